import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { openSink } from '../../../scripts/bench/own-sink.ts'
import { sendPaced } from '../../../scripts/bench/paced-source.ts'

test('a paced source sends the messages of its rate, and times greetings', async () => {
  const counts = { arrived: 0 }
  const sink = openSink({ arrived: () => counts.arrived++ })
  await once(sink.listen(0, '127.0.0.1'), 'listening')
  try {
    const { accepted, greetings } = await sendPaced((sink.address() as AddressInfo).port, 100, 0.2)
    expect({ accepted, arrived: counts.arrived, greetings: greetings.length }).toEqual({ accepted: 20, arrived: 20, greetings: 10 })
  } finally {
    sink.close()
  }
})

test('a paced source sends to its destinations in turns, and fails when a recipient is deferred', async () => {
  const sink = openSink({ arrived: () => undefined, defers: () => asked++ >= 4 })
  let asked = 0
  await once(sink.listen(0, '127.0.0.1'), 'listening')
  const { port } = sink.address() as AddressInfo
  try {
    expect((await sendPaced(port, 100, 0.04, 3)).accepted).toBe(4)
    await expect(sendPaced(port, 100, 0.01, 3)).rejects.toThrow('the relay said: 450 4.2.2 the mailbox is full')
  } finally {
    sink.close()
  }
})
