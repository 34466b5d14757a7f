"""The embedded Celery broker: a queue in the control-plane database, for installs without Redis or AMQP."""
