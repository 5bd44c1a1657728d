"""The demonstration: four departments of a hospital, from four files to a prediction for new patients.

The data is real: the breast cancer set that comes with scikit-learn, 569 patients and 30 measures of the
nuclei of a cell sample. It is dealt out as four CSV files. Every department lacks some patients, has its own
order and spells ids in its own way; the clinic's file has the diagnosis. Some patients are new: nobody has
trained on them. Then everything happens as it would between companies, with the same commands: certificates,
a daemon per department, a proposal, private alignment, training, a share at each, scores of new patients.
"""
