import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Lookup, Net } from '../../../src/system/net.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { peerName } from '../../../src/smtpd/dialogue/peer-name.ts'
import { realClock } from '../../support/real-clock.ts'
import { SystemNet } from '../../../src/system/system-net.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const NONE: Lookup<string> = { kind: 'none', nxdomain: true }
const found = (...records: string[]): Lookup<string> => ({ kind: 'found', records })

/** A network with these names, their addresses in DNS, and those that the machine knows. */
function network(names: Lookup<string>, addresses: Lookup<string>, hosts = NONE): Net {
  const nothing = () => Promise.reject(new Error('not called in this test'))
  return {
    dial: nothing,
    listen: nothing,
    lookupMx: nothing,
    lookupHost: async () => hosts,
    lookupTxt: nothing,
    lookupSecure: nothing,
    ownAddresses: () => [],
    lookupNames: async () => names,
    lookupAddresses: async () => addresses,
  }
}

test.each([
  ['a name that leads back', found('Mail.Example.'), found('192.0.2.1', '192.0.2.7'), 'mail.example'],
  ['a name that leads elsewhere', found('mail.example'), found('192.0.2.1'), 'unknown'],
  ['a name that leads nowhere', found('mail.example'), NONE, 'unknown'],
  ['no name', NONE, found('192.0.2.7'), 'unknown'],
  ['a name that is none', found('mail\r\nX: y.example'), found('192.0.2.7'), 'unknown'],
  ['a failure', { kind: 'failed', soft: true, reason: 'SERVFAIL' }, found('192.0.2.7'), 'unknown'],
] as const)('%s', async (_, names, addresses, name) => {
  expect(await peerName('192.0.2.7', network(names, addresses), new VirtualClock())).toBe(name)
})

test.each([
  ['a name of /etc/hosts that DNS lacks', found('app1'), NONE, found('192.0.2.7'), 'app1'],
  ['a name that DNS cannot look up now', found('app1'), { kind: 'failed', soft: true, reason: 'ETIMEOUT' }, found('192.0.2.7'), 'unknown'],
] as const)('%s', async (_, names, addresses, hosts, name) => {
  expect(await peerName('192.0.2.7', network(names, addresses, hosts), new VirtualClock())).toBe(name)
})

test('a client on loopback is localhost, as /etc/hosts says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-hosts-'))
  const hostsFile = join(folder, 'hosts')
  writeFileSync(
    hostsFile,
    '# static table\n127.0.0.1\tLocalhost localhost.localdomain # this machine\n127.0.0.1 vm\n0:0:0:0:0:0:0:1 localhost ip6-localhost\n',
  )
  // A name server that does not answer.
  const net = new SystemNet({ dnsServers: ['127.0.0.1:9'], hostsFile })
  const names = ['127.0.0.1', '::1'].map((address) => peerName(address, net, realClock))
  expect(await Promise.all(names)).toEqual(['localhost', 'localhost'])
  rmSync(folder, { recursive: true })
})

test('has a short lookup timeout', async () => {
  const clock = new VirtualClock()
  const silent: Net = { ...network(NONE, NONE), lookupNames: () => new Promise(() => {}) }
  const name = peerName('192.0.2.7', silent, clock)
  expect(clock.nextAt()).toBe(clock.now() + 5 * SECOND)
  clock.runNext()
  expect(await name).toBe('unknown')
})
