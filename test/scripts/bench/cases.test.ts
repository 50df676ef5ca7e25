import { expect, test } from 'vitest'
import { CASES, describeCase, messagesOf } from '../../../scripts/bench/cases.ts'

const COUNTS = { messages: 4_000, drained: 100_000 }
const counted = (name: string, isSlow: boolean): number[] =>
  CASES.filter((load) => load.name === name).map((load) => messagesOf(load, COUNTS, isSlow))

test('a case has its share of the messages, and a slow relay a part of these', () => {
  expect([counted('kept', false), counted('kept', true)]).toEqual([[4_000], [1_000]])
  expect([counted('5-MB', false), counted('5-MB', true)]).toEqual([[40], [10]])
  expect([counted('cold-start', false), counted('cold-start', true)]).toEqual([[5_000], [1_250]])
  expect([counted('drain', false), counted('drain', true)]).toEqual([[100_000], [2_000]])
})

test('a case is described in one line', () => {
  const described = (name: string) => CASES.filter((load) => load.name === name).map(describeCase)
  expect(described('kept-1')).toEqual(['2 kB, 1 recipient, 1 client, kept connections'])
  expect(described('50-recipients')).toEqual(['2 kB, 50 recipients, 20 clients, kept connections'])
  expect(described('paced')).toEqual(['2 kB, 1 recipient, 20 clients, kept connections, 200 a second'])
  expect(described('bounced')).toEqual(['2 kB, 1 recipient, 20 clients, kept connections, half bounced'])
  expect(described('smtp-source-new')).toEqual(['2 kB, 1 recipient, 20 clients, new connections'])
  expect(described('drain')).toEqual(['2 kB, deferred mail after the host has recovered'])
})
