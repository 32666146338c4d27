"""For people and CI, and for no worker: an import contract holds that.

`policy` reads policies as logic and tries them; `funnel` runs cases of proposed calls and measures the gates.
"""
