# First process of a machine that boots the ramdisk of Ironic: root in namespaces of its own; its last line is the agent.
# Arguments: the folder of its files, the disk, the virtual environment of the agent, and the command to run in the end.
#
# The agent erases disks. So it runs as a user who owns one loop device and nothing else, without a single capability,
# where no other block device has a name: not in /dev, not in /sys. It cannot make one (mknod), mount devtmpfs, load a
# module, set a clock, restart this host (reboot, sysrq) or write to any file of it.
set -euo pipefail
at=$1 disk=$2 venv=$3
shift 3
user=64010
case $disk in /dev/loop[0-9]*) ;; *) echo "$disk is no loop device" >&2; exit 1 ;; esac
name=${disk#/dev/}
number=$(cat "/sys/class/block/$name/dev")

hide() { mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$1"; }

mount --make-rprivate /
mount -t tmpfs -o mode=755,nosuid tmpfs /mnt
mkdir /mnt/agent /mnt/venv /mnt/python /mnt/dev /mnt/button
cp -r "$at/." /mnt/agent
chmod -R a+rX /mnt/agent
mount --bind "$at/button" /mnt/button
mount -o remount,bind,nosuid,nodev,noexec /mnt/button
mount --bind "$venv" /mnt/venv
mount --bind "$("$venv/bin/python" -c 'import sys; print(sys.base_prefix)')" /mnt/python  # a home is closed to that user
mkdir -p /mnt/box/bin
ln -s /mnt/venv/lib /mnt/box/lib
ln -s /mnt/python/bin/python3 /mnt/box/bin/python
echo "home = /mnt/python/bin" >/mnt/box/pyvenv.cfg

for place in /sys/block /sys/class/block; do
    hide "$place"
    ln -s "/sys/devices/virtual/block/$name" "$place/$name"
done
hide /sys/dev/block
ln -s "/sys/devices/virtual/block/$name" "/sys/dev/block/$number"
mount -o remount,bind,ro /sys

mount -t tmpfs -o mode=755,nosuid,noexec tmpfs /mnt/dev
for one in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9; do
    IFS=: read -r called major minor <<<"$one"
    mknod -m 666 "/mnt/dev/$called" c "$major" "$minor"
done
mknod -m 600 "/mnt/dev/$name" b "${number%:*}" "${number#*:}"
chown "$user:$user" "/mnt/dev/$name"
mkdir -m 1777 /mnt/dev/shm
mount --move /mnt/dev /dev
mount -t tmpfs -o mode=1777,nosuid,nodev,noexec,size=16m tmpfs /dev/shm  # the agent erases drives in threads with a lock
mount -o remount,ro /dev

mount --bind /mnt/agent/cmdline /proc/cmdline
[ ! -e /proc/sysrq-trigger ] || mount --bind /dev/null /proc/sysrq-trigger
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
hide /run
install -d -o "$user" -m 700 /run/ironic-python-agent
mount -t tmpfs -o mode=1777,nosuid,nodev,size=256m tmpfs /tmp
mount -o remount,bind,ro /

seen=$(find /dev /run /tmp /mnt -xdev -type b)
[ "$seen" = "$disk" ] || { echo "other block devices are in sight: $seen" >&2; exit 1; }
cd /tmp
# Not exec: the kernel forgets whose death ends a process once that changes its user, and the first process ends all.
setpriv --reuid $user --regid $user --clear-groups --inh-caps -all --bounding-set -all --no-new-privs \
    env -i PATH=/mnt/agent/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 HOSTLER_DISK="$disk" \
    PYTHONPATH=/mnt/agent/plugin LD_LIBRARY_PATH=/mnt/python/lib PYTHONDONTWRITEBYTECODE=1 "$@"
