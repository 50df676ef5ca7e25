import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/values/problem.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const read = (events: object) => configFrom({ events }, 'relay.example')

function problemsOf(events: object): string {
  try {
    read(events)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

test('a table without keys keeps all events for those who read them', () => {
  expect(read({ app: {} }).config.events.get('app')).toMatchObject({
    to: '',
    types: ['*'],
    destinations: [],
    senders: [],
    secrets: [],
    allowPrivate: false,
    format: 'deferd',
    batch: 1,
    size: 0,
    keep: 5,
  })
})

test('all keys are read', () => {
  const table = {
    to: 'http://10.0.0.1/hook',
    types: ['recipient.*', 'notice.sent'],
    destinations: ['*.example.org'],
    senders: 'app@*',
    secret: [SECRET],
    allow_private: true,
    format: 'cloudevents',
    batch: 100,
    size: '10M',
    keep: 3,
  }
  expect(read({ 'my.app': table }).config.events.get('my.app')).toMatchObject({
    to: 'http://10.0.0.1/hook',
    types: ['recipient.*', 'notice.sent'],
    senders: ['app@*'],
    secrets: [SECRET],
    allowPrivate: true,
    batch: 100,
    size: 10 * 1024 * 1024,
  })
})

test.each<[string, object, string]>([
  ['a type that does not exist', { app: { types: ['recipient.lost'] } }, 'events."app": types: expected a list of types'],
  ['http without allow_private', { app: { to: 'http://hooks.example/' } }, 'needs allow_private = true'],
  ['a password in the URL', { app: { to: 'https://ann:x@hooks.example/' } }, 'to: expected https://'],
  ['a relative file', { app: { to: 'file:events.jsonl' } }, 'to: expected https://'],
  ['an unknown key', { app: { url: 'https://hooks.example/' } }, 'unknown key url; a table has to, types'],
  ['a name with blanks', { 'my app': {} }, 'expected a name of letters, digits'],
  ['a batch of nothing', { app: { batch: 0 } }, 'batch: expected a whole number from 1 to 1000'],
])('%s is refused', (_, events, sentence) => {
  expect(problemsOf(events)).toContain(sentence)
})

test('a short secret is refused, and no secret is shown', () => {
  const short = `whsec_${Buffer.alloc(8, 9).toString('base64')}`
  expect(problemsOf({ app: { secret: short } })).toContain('base64 of 24 to 64 bytes')
  expect(problemsOf({ app: { secret: short } })).not.toContain(short)
  expect(JSON.stringify([...(read({ app: { secret: SECRET } }).writtenEvents.get('app') ?? [])])).toBe('[["secret","(not shown)"]]')
})
