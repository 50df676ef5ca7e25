import { expect, test } from 'vitest'
import { isPublicAddress } from '../../src/system/public-address.ts'

test.each(['8.8.8.8', '192.0.2.1', '172.32.0.1', '100.128.0.1', '2001:db8::1', '64:ff9b::8.8.8.8', '::ffff:8.8.8.8'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true)
  },
)

test.each([
  ['this network', '0.1.2.3'],
  ['private use', '10.1.2.3'],
  ['shared address space', '100.64.0.1'],
  ['loopback', '127.0.0.53'],
  ['link-local, as cloud metadata services', '169.254.169.254'],
  ['private use', '172.31.255.255'],
  ['private use', '192.168.1.1'],
  ['benchmarking', '198.19.0.1'],
  ['multicast', '224.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::'],
  ['loopback', '::1'],
  ['IPv4-mapped', '::ffff:127.0.0.1'],
  ['NAT64 of a private address', '64:ff9b::10.0.0.1'],
  ['6to4', '2002:7f00:1::'],
  ['unique local', 'fd00::1'],
  ['link-local', 'fe80::1'],
  ['multicast', 'ff02::1'],
  ['not an address', 'localhost'],
])('%s: %s is not public', (_, address) => expect(isPublicAddress(address)).toBe(false))
