"""The page of the hardware database."""

import streamlit as st

from calculators import page_kit
from calculators.facts import fact_of
from calculators.hardware import ROOM, figures, tables

inputs = page_kit.open_page(ROOM)
records = tables.found(inputs)
total = len(tables.TABLES[inputs.table]())
st.markdown(f"**{len(records)} of {total} {inputs.table}**: {tables.NOTES[inputs.table]}.")
page_kit.data_table(tables.columns(inputs.table, records), f"table-{inputs.table}", digits=6)

if not records:
    st.markdown("Nothing has all of these words; use fewer.")

st.subheader("Rooflines", anchor=False)
lines, without = tables.rooflines(inputs)
figure = figures.roofline_plot(lines, inputs.accelerator, inputs.roofline_dtype)
points = [(each, x, y) for each in lines for x, y in zip(each.intensity, each.tflops, strict=True)]
page_kit.show_figure(
    figure,
    "rooflines",
    alt=f"Dense {inputs.roofline_dtype} rate against arithmetic intensity for {len(lines)} accelerators",
    table={
        "Accelerator": [each.id for each, _, _ in points],
        "Arithmetic intensity (FLOP/byte)": [x for _, x, _ in points],
        "Dense rate (TFLOP/s)": [y for _, _, y in points],
    },
)
if without:
    st.caption(f"No {inputs.roofline_dtype} rate, so no line: {', '.join(without)}.")

record = tables.record_of(inputs)
st.subheader(f"Record: {record.id}", anchor=False)
page_kit.data_table(tables.fields_of(record), f"record-{record.id}")
page_kit.show_sources([fact_of(record, "Record")])
