"""What a person with a GPU needs: what the papers' presets would take on one, by counting (`plan`),
and whether the models compute there what they compute on a CPU, and how fast (`run`)."""
