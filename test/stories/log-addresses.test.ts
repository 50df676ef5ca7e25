/** With log_addresses, neither a line of the log nor an event has an address; delivery and the queue have it. */
import { expect, test } from 'vitest'
import type { AddressForm } from '../../src/mail/told-addresses.ts'
import { pseudonymOf } from '../../src/mail/pseudonym.ts'
import { currentKey } from '../../src/queue/erasing.ts'
import { seededRandom } from '../../src/system/random.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { RecentLog } from '../../src/telemetry/recent-log.ts'
import { createWorld } from '../../src/testkit/create-world.ts'

const ALL = { level: 'warn', event: null, queueId: null, destination: null, text: null, after: null, before: null } as const
const ADDRESS = /(?:anna|bob|eve|boss)@/i

/** All that is written about a delivery, a deferral, a bounce and a refusal. */
async function told(form: AddressForm) {
  await using world = await createWorld({ config: { log_addresses: form } })
  const { addresses } = world.lives
  let text = ''
  const write = (written: string) => (text += written)
  const common = { syslogName: 'deferd', host: 'relay', pid: 1, clock: world.clock, write, addresses }
  const logs = [openLog({ ...common, format: 'postfix' }), openLog({ ...common, format: 'json' })]
  const recent = new RecentLog(world.clock.wall.now(), addresses)
  for (const { listen } of [...logs, recent]) world.relayEvents.listen(listen)
  const hook = await world.webhook('app', {})
  world.destination('far.example').rejects('anna@far.example', '550 5.1.1 <anna@far.example>: no such user')
  world.destination('far.example').defers('eve@far.example')
  await world.submit({ from: 'boss@here.example', to: ['anna@far.example', 'bob@far.example', 'eve@far.example'] })
  await world.advance('1h')
  world.relayEvents.emit({ kind: 'note', level: 'warning', text: 'anna@far.example is not known' })
  for (const log of logs) log.flush()
  const lines = recent.find({ filter: ALL, through: null, limit: 100 }).lines.map((line) => line.text)
  expect(world.attempts('bob@far.example').at(-1)).toMatchObject({ outcome: 'delivered' })
  await world.erase('recipient', 'anna@far.example')
  const key = await currentKey({ store: world.store, clock: world.lives.life.clock, random: seededRandom(2) })
  return { text, lines, events: hook.requests().map(({ body }) => body), erased: pseudonymOf(key, 'anna@far.example') }
}

test('full tells all addresses', async () => {
  const { text, lines, events } = await told('full')
  for (const name of ['anna', 'bob', 'eve']) expect(text).toContain(`to=<${name}@far.example>`)
  expect(lines).toContain('anna@far.example is not known')
  expect(events.join()).toMatch(ADDRESS)
})

test.each(['hashed', 'domain'] as const)('%s tells none', async (form) => {
  const { text, lines, events, erased } = await told(form)
  expect(text).not.toMatch(ADDRESS)
  expect(lines.join()).not.toMatch(ADDRESS)
  expect(events.join()).not.toMatch(ADDRESS)
  const shown = form === 'domain' ? /\*\*\*@far\.example/ : /erased-[0-9a-f]{8}/
  for (const type of ['delivered', 'deferred', 'bounced']) {
    expect(events.find((event) => event.includes(`recipient.${type}`))).toMatch(shown)
    expect(text.split('\n').find((line) => line.includes(`"outcome":"${type}"`))).toMatch(shown)
  }
  if (form === 'hashed') expect(text).toContain(`to=<${erased}>`)
  expect(text).toMatch(form === 'domain' ? /to=<\*\*\*@far\.example>, .*status=sent/ : /to=<erased-[0-9a-f]{8}>, .*status=sent/)
})
