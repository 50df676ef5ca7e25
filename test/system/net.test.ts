/** Wrappers of the Net port pass on every method that they do not replace. */
import { describe, expect, test } from 'vitest'
import { InheritedSockets } from '../../src/daemon/systemd.ts'
import type { Lookup, Net } from '../../src/system/net.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { Incarnation } from '../../src/testkit/virtual/incarnation.ts'
import { MemoryNet } from '../../src/testkit/virtual/memory-net.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const NONE = { kind: 'none', nxdomain: true } as const

/** A machine at 192.0.2.1 in a network in memory where every exchanger is mx.example and every name is host.example. */
class Machine extends MemoryNet {
  constructor(clock: VirtualClock) {
    super(clock, {
      lookupMx: () => ({ kind: 'found', records: [{ preference: 10, exchange: 'mx.example' }] }),
      lookupAddresses: (_, family) => (family === 4 ? { kind: 'found', records: ['192.0.2.7'] } : NONE),
      lookupTxt: () => ({ kind: 'found', records: ['v=spf1 -all'] }),
      dial: () => ({ kind: 'closed', code: 'ECONNREFUSED' }),
    })
  }

  override async lookupNames(): Promise<Lookup<string>> {
    return { kind: 'found', records: ['host.example'] }
  }

  override ownAddresses(): readonly string[] {
    return ['192.0.2.1']
  }
}

async function everyMethod(net: Net) {
  const at = { address: '127.0.0.1', port: 25 }
  return {
    mx: await net.lookupMx('far.example'),
    addresses: await net.lookupAddresses('mx.example', 4),
    host: await net.lookupHost('mx.example'),
    names: await net.lookupNames('192.0.2.7'),
    txt: await net.lookupTxt('far.example'),
    own: net.ownAddresses(),
    dialled: await net.dial({ address: '192.0.2.7', port: 25, timeout: 1 }).catch((error: unknown) => Object(error).code),
    listening: (await net.listen(at, () => undefined)).port,
  }
}

const EXPECTED = {
  mx: { kind: 'found', records: [{ preference: 10, exchange: 'mx.example' }] },
  addresses: { kind: 'found', records: ['192.0.2.7'] },
  host: { kind: 'found', records: ['192.0.2.7'] },
  names: { kind: 'found', records: ['host.example'] },
  txt: { kind: 'found', records: ['v=spf1 -all'] },
  own: ['192.0.2.1'],
  dialled: 'ECONNREFUSED',
  listening: 25,
}

function life(clock: VirtualClock): Incarnation {
  return new Incarnation({ clock, net: new Machine(clock), store: openMemoryStore().store, onEvent: () => undefined })
}

describe('every method of the network answers', () => {
  test('behind inherited sockets', async () => {
    expect(await everyMethod(new InheritedSockets(new Machine(new VirtualClock()), []))).toEqual(EXPECTED)
  })

  test('in a relay that can be killed', async () => {
    expect(await everyMethod(life(new VirtualClock()).net)).toEqual(EXPECTED)
  })
})

test('a killed relay never gets an answer to a look-up that was under way', async () => {
  const killed = life(new VirtualClock())
  const answers: unknown[] = []
  const { net } = killed
  const hosts = [net.lookupAddresses('mx.example', 4), net.lookupHost('mx.example')]
  for (const asked of [net.lookupMx('far.example'), ...hosts, net.lookupNames('192.0.2.7'), net.lookupTxt('far.example')]) {
    void asked.then((answer) => answers.push(answer))
  }
  killed.die()
  await new Promise((resolve) => setImmediate(resolve))
  expect(answers).toEqual([])
})
