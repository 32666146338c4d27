"""The console: a web page on which people settle what lies in review.

Here: `app` puts it together, `door` who comes in and what is let through, `pages` what is shown, `rendering` templates
and static files, `caller` who asks, `routes` what there is to ask.
Not here: the view and what a settlement is (ticketgate.streams.operations.review), the worker's web port
(ticketgate.streams.process.web).
"""
