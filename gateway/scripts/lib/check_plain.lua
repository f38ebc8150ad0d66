-- check_plain.lua - most checks: nothing changes.
if IS_PLAIN and IS_MARKED then
    return { 'accepted', SEQ, ARGV[2] + 0 }
end
