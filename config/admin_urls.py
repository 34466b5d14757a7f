"""Pages of the operators' site; importing this module finds every admin module. See config/admin.py."""

from django.contrib import admin

admin.autodiscover()
urlpatterns = admin.site.get_urls()
