# SPDX-License-Identifier: Apache-2.0
import calendar
import datetime
import locale
import os
import time
import zoneinfo

when = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
for zone in ("Europe/Berlin", "America/New_York", "Asia/Kolkata"):
    print(when.astimezone(zoneinfo.ZoneInfo(zone)).isoformat())
print(when + datetime.timedelta(days=366), when.strftime("%A %d %B %Y"), calendar.isleap(2100))
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(time.tzname, time.strftime("%H:%M", time.localtime(0)))
print(datetime.datetime.fromisoformat("2024-03-31T01:30:00+01:00").timestamp())
print(locale.setlocale(locale.LC_ALL, "C.UTF-8"), time.strftime("%x", time.gmtime(0)))
