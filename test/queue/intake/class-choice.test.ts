/** The class of a message: the listener, then the tables in their order, then the default; requests may lower, and raise where allowed. */
import { expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import type { RelayConfig } from '../../../src/config/relay-config.ts'
import { ClassChoice, openClassMaps, type ClassFacts } from '../../../src/queue/intake/class-choice.ts'
import { LookupFailed } from '../../../src/rewriting/lookup-table.ts'

const CLASSES = {
  fast: { weight: 100, allow: ['app', 'token:shop', '10.0.0.0/24'] },
  normal: { weight: 10 },
  bulk: { weight: 1 },
}

function choiceOf(more: RelayConfig = {}): (facts: Partial<ClassFacts>) => string | undefined {
  const { config } = configFrom({ class: CLASSES, ...more }, 'relay.example')
  const choice = ClassChoice.of(config, openClassMaps(config).maps)
  return (facts) =>
    choice?.classOf({ sender: 'a@us.example', user: undefined, address: '192.0.2.1', listenerClass: '', asked: undefined, ...facts })
}

test('without classes there is nothing to choose', () => {
  const { config } = configFrom({}, 'relay.example')
  expect(ClassChoice.of(config, openClassMaps(config).maps)).toBeNull()
})

test('the first of listener, login, sender, client and default_class decides', () => {
  const of = choiceOf({
    sasl_class_maps: { app: 'fast', 'token:news': 'bulk' },
    sender_class_maps: { '@news.example': 'bulk', 'alert@news.example': 'fast', '<>': 'fast' },
    client_class_maps: 'cidr:{{10.0.0.0/8 bulk}}',
  })
  const sender = 'x@news.example'
  expect(of({ listenerClass: 'normal', user: 'app', sender })).toBe('normal')
  expect(of({ user: 'App', sender })).toBe('fast')
  expect(of({ user: 'token:news' })).toBe('bulk')
  expect(of({ user: 'other', sender })).toBe('bulk')
  expect(of({ sender: 'alert@news.example' })).toBe('fast')
  expect(of({ sender: '' })).toBe('fast')
  expect(of({ address: '10.1.2.3' })).toBe('bulk')
  expect(of({})).toBe('normal')
})

test('a request lowers for everybody, and raises for the clients that the class names', () => {
  const of = choiceOf()
  expect(of({ asked: 'bulk' })).toBe('bulk')
  expect(of({ asked: 'normal' })).toBe('normal')
  expect(of({ asked: 'fast' })).toBe('normal')
  expect(of({ asked: 'unknown' })).toBe('normal')
  expect(of({ asked: 'fast', user: 'app' })).toBe('fast')
  expect(of({ asked: 'fast', user: 'token:shop' })).toBe('fast')
  expect(of({ asked: 'fast', address: '10.0.0.7' })).toBe('fast')
  expect(of({ asked: 'fast', address: null })).toBe('normal')
  expect(choiceOf({ class: { ...CLASSES, fast: { weight: 100, allow: ['127.0.0.1'] } } })({ asked: 'fast', address: null })).toBe('fast')
})

test('a pattern that gives no class fails the lookup, so that the mail is refused for now', () => {
  const of = choiceOf({ sender_class_maps: 'regexp:{{/^(.*)@us/ $$1}}' })
  expect(of({ sender: 'bulk@us.example' })).toBe('bulk')
  expect(() => of({ sender: 'ann@us.example' })).toThrow(LookupFailed)
})
