rm -f /work/tmp-m/teacher.npy
chrt -i 0 nice -n 19 /work/tmp-m/venv/bin/python /work/tmp-m/proto/embed.py > /work/tmp-m/embed.log 2>&1
chrt -i 0 nice -n 19 /work/tmp-m/venv/bin/python /work/tmp-m/proto/distil.py 2 > /work/tmp-m/distil.log 2>&1
