/** Mistakes in the use of a world are reported where they are made; none passes silently. */
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createWorld, matchers, type WorldOptions } from '../../src/testkit/index.ts'
import type { World } from '../../src/testkit/world.ts'

expect.extend(matchers)

const send = (world: World) => createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'ann@slow.example', text: 'hi' })

/** A value that the types of the test kit refuse, as a caller in JavaScript would pass it. */
const untyped = (value: unknown) => value as never

let world: World
beforeAll(async () => {
  world = await createWorld()
  await send(world)
  await world.settle()
})
afterAll(() => world.close())

describe('remote domains', () => {
  const domain = () => world.destination('slow.example')
  test.each<[string, () => unknown, string]>([
    ['a reply as recipient of rejects', () => domain().rejects('550 no'), `for all recipients write rejects('*', "550 no")`],
    ['a reply as recipient of defers', () => domain().defers('451'), `for all recipients write defers('*', "451")`],
    ['a reply as recipient of mailboxIsFull', () => domain().mailboxIsFull('452 4.2.2 full'), 'expects a recipient first'],
    ['success as rejection', () => domain().rejects('*', '250 ok'), 'rejects expects a 5xx reply, got "250 ok", which is a success'],
    ['a deferral as rejection', () => domain().rejects('*', '450 later'), 'which is a temporary failure; use defers()'],
    ['a rejection as deferral', () => domain().defers('*', '550 no'), 'which is a permanent failure; use rejects()'],
    ['success as failed attempt', () => domain().failsFirst(1, '250 ok'), 'failsFirst expects a 4xx or 5xx reply'],
    ['success as throttling', () => domain().throttles('1/1m', { reply: '250 ok' }), 'throttles expects a 4xx or 5xx reply'],
    ['an unknown option', () => domain().defers('*', undefined, untyped({ four: '1h' })), 'defers has no option "four"; did you mean for?'],
    ['an address as domain', () => world.destination('ann@slow.example'), 'write destination("slow.example")'],
    [
      'a recipient of another domain',
      () => domain().rejects('bob@fast.example'),
      `write destination("fast.example").rejects("bob@fast.example")`,
    ],
    ['a local part as recipient', () => domain().defers('bob'), `write defers("bob@slow.example")`],
    ['options as reply', () => domain().defers('*', untyped({ for: '2h' })), 'defers expects a reply such as "450 text", got {"for":"2h"}'],
    ['no delay', () => domain().greylists(untyped(undefined)), 'expected a value for greylist, got undefined'],
    ['no number', () => domain().failsFirst(untyped(undefined)), 'expected a value for first, got undefined'],
    ['no rule', () => world.rule(untyped(undefined)), 'rule expects an object, got undefined'],
    ['no name', () => world.destination(untyped(undefined)), 'destination expects a domain such as "example.net", got undefined'],
    ['a port', () => world.destination('slow.example:25'), 'write destination("slow.example")'],
    ['no domain', () => world.destination(''), 'destination expects a domain such as "example.net", got ""'],
  ])('%s', (_, misuse, message) => {
    expect(misuse).toThrow(message)
    expect(misuse).toThrow(TypeError)
  })
})

describe('worlds', () => {
  test.each<[string, object, string]>([
    ['an unknown option', { sed: 7 }, 'createWorld has no option "sed"; did you mean seed?'],
    ['a seed in a text', { seed: '7' }, 'seed expects a whole number, got "7"'],
    ['a seed that is no number', { seed: NaN }, 'seed expects a whole number, got NaN'],
    ['users without TLS', { users: { app: 'secret' } }, 'users need tls: AUTH is offered over TLS only'],
    ['a user without password', { tls: 'starttls', users: { app: 1 } }, "users expects passwords by name such as { app: 'secret' }"],
    ['another form of TLS', { tls: 'wrapper' }, 'tls expects none, starttls, got "wrapper"'],
    ['the name of a zone', { zone: 'Europe/Berlin' }, 'zone expects a function'],
    ['a configuration in a text', { config: 'x' }, 'config expects an object, got "x"'],
    ['the name of a script', { script: 'faults.toml' }, `for a file write script: readFileSync("faults.toml", 'utf8')`],
    ['an unknown store', { store: 'sqllite' }, `store expects 'memory', 'sqlite' or { directory: '/path' }, got "sqllite"`],
    ['a store without a folder', { store: {} }, 'store expects'],
    ['a mistyped folder', { store: { directory: '/tmp', dir: 1 } }, 'store has no option "dir"'],
  ])('%s', (_, options, message) => expect(createWorld(options as WorldOptions)).rejects.toThrow(message))

  test('unknown operations, and ids that are not a list', async () => {
    await expect(world.operate(untyped('hodl'))).rejects.toThrow('there is no operation "hodl"; did you mean hold?')
    await expect(world.operate('hold', untyped('3mNhxG4Vz2zW4'))).rejects.toThrow('expects a list of queue ids')
    await expect(world.crash(untyped({ downfor: '1m' }))).rejects.toThrow('did you mean downFor?')
    await expect(world.advance(Date.UTC(2026, 0, 1))).rejects.toThrow('at most ten years, in seconds and not in milliseconds')
    await expect(world.advance(NaN)).rejects.toThrow('or a number of seconds, got NaN')
    await expect(createWorld(untyped(5))).rejects.toThrow('createWorld expects an object, got 5')
    await expect(world.events({ types: ['recipient.boucned'] })).rejects.toThrow('did you mean recipient.bounced?')
    await expect(world.webhook('app', { types: ['bounced'] })).rejects.toThrow('there is no type of event "bounced"')
    await expect(world.events(untyped({ type: 'recipient.*' }))).rejects.toThrow('did you mean types?')
    await expect(world.suspend('ann@slow.example')).rejects.toThrow('suspend expects a domain')
  })
})

test('an expectation that a mistyped address would meet fails', () => {
  const mistyped = world.recipient('ann@slwo.example')
  const message = /has accepted no message for ann@slwo\.example, so this .*did you mean ann@slow\.example\?/
  expect(() => expect(mistyped).not.toHaveBounced()).toThrow(message)
  expect(() => expect(mistyped).toHaveCausedNotices([])).toThrow(message)
  expect(() => expect(mistyped).toHaveBounced()).toThrow('no message for it was accepted')
  expect(world.recipient('ann@slow.example')).not.toHaveBounced()
})

test('a closed world takes no mail and does not advance', async () => {
  const closed = await createWorld()
  const { port } = await closed.openPort()
  await closed.close()
  await closed.close()
  await expect(send(closed)).rejects.toThrow('the world is closed')
  await expect(closed.advance('1h')).rejects.toThrow('the world is closed')
  await expect(closed.settle()).rejects.toThrow('the world is closed')
  await expect(closed.operate('hold')).rejects.toThrow('the world is closed')
  await expect(closed.restart()).rejects.toThrow('the world is closed')
  await expect(closed.crash()).rejects.toThrow('the world is closed')
  await expect(closed.suspend('slow.example')).rejects.toThrow('the world is closed')
  await expect(createTransport({ host: '127.0.0.1', port }).verify()).rejects.toThrow('ECONNREFUSED')
})
