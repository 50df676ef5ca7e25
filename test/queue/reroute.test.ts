import { expect, test } from 'vitest'
import { reroute } from '../../src/queue/reroute.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { DestinationDue } from '../../src/store/message-operation.ts'
import { HOUR } from '../../src/system/clock.ts'
import { LIFETIME, queue, T0 } from '../conformance/mail.ts'

/** More than one slice of messages, one recipient in three at moved.example. */
async function filled(count: number) {
  const { store, reader } = openMemoryStore()
  for (let n = 0; n < count; n++)
    await queue(store, {
      to: ['moved', 'short', 'same'].map((name) => ({ address: `u${n}@${name}.example`, destination: `${name}.example` })),
    })
  const recipients = async () => (await reader.list(ANY_MESSAGE, { after: 0, limit: count })).flatMap((message) => message.recipients)
  return { store, reader, recipients }
}

test('mail whose route or lifetime changed is moved, in slices; other mail is not touched', async () => {
  const { store, reader, recipients } = await filled(300)
  const woken: { readonly due: readonly DestinationDue[]; readonly expiresAt: number }[] = []
  let pauses = 0
  const moved = await reroute({
    routes: () => true,
    store,
    reader,
    routeOf: (address, { createdAt }) => ({
      destination: address.endsWith('@moved.example') ? 'smtp:[hub.example]:25' : address.replace(/^.*@/, ''),
      expiresAt: createdAt + (address.endsWith('@short.example') ? HOUR : LIFETIME),
    }),
    woken: (due, { expiresAt }) => woken.push({ due, expiresAt }),
    pause: () => Promise.resolve(void pauses++),
  })
  expect([moved, pauses]).toEqual([600, 2])
  const after = await recipients()
  expect(new Set(after.map(({ destination }) => destination))).toEqual(new Set(['smtp:[hub.example]:25', 'short.example', 'same.example']))
  const lifetimes = after.map(({ destination, expiresAt }) => [destination, expiresAt - T0] as const)
  expect(new Set(lifetimes.filter(([destination]) => destination === 'short.example').map(([, lifetime]) => lifetime))).toEqual(
    new Set([HOUR]),
  )
  expect(new Set(lifetimes.filter(([destination]) => destination === 'same.example').map(([, lifetime]) => lifetime))).toEqual(
    new Set([LIFETIME]),
  )
  expect(woken.map(({ expiresAt }) => expiresAt - T0)).toEqual([HOUR, HOUR])
  expect(woken[0]?.due.map(({ destination }) => destination).toSorted()).toEqual(['short.example', 'smtp:[hub.example]:25'])
})

test('an unchanged configuration moves nothing', async () => {
  const { store, reader } = await filled(3)
  const moved = await reroute({
    routes: () => true,
    store,
    reader,
    routeOf: (address, { createdAt }) => ({ destination: address.replace(/^.*@/, ''), expiresAt: createdAt + LIFETIME }),
    woken: () => expect.unreachable(),
    pause: () => Promise.resolve(),
  })
  expect(moved).toBe(0)
})
