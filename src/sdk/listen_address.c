#include "sdk/listen_address.h"

#include "base/str.h"
#include "wire/header.h"

bool listen_address_is_loopback(bay_str address)
{
    bay_str host = str_head(address, str_find_last(address, ':'));
    if (str_starts(host, STR("[")) && str_ends(host, STR("]"))) {
        host = (bay_str){host.at + 1, host.len - 2};
    }
    return header_host_is_loopback(host);
}
