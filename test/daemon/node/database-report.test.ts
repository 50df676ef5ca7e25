import { expect, test } from 'vitest'
import { DatabaseReport } from '../../../src/daemon/node/database-report.ts'
import type { DatabaseState } from '../../../src/store/membership/database-state.ts'
import { Events } from '../../../src/telemetry/events.ts'

const STATE: DatabaseState = { at: 0, oldest: null, horizon: 0, deadRows: [], standbys: [] }
const standby = (sync: string) => ({ name: 'db2', sync, behind: 0, lag: 0 })

function report({ reports = true, replicated = false } = {}) {
  const events = new Events(() => 0)
  const notes: string[] = []
  events.listen((event) => event.kind === 'note' && notes.push(`${event.level}: ${event.text}`))
  return { notes, report: new DatabaseReport({ events, reports: () => reports, replicated }) }
}

test('a transaction is reported once from a minute on, and its end', () => {
  const { notes, report: it } = report()
  const held = (age: number) => it.seen({ ...STATE, oldest: { age, of: 'psql of alice, process 7' } })
  for (const age of [15_000, 45_000, 60_000, 75_000]) held(age)
  expect(notes).toEqual([
    'warning: a transaction is open for 60 s, and dead rows of the queue are kept until its end: psql of alice, process 7',
  ])
  it.seen(STATE)
  it.seen(STATE)
  expect(notes.slice(1)).toEqual(['info: psql of alice, process 7 has ended: dead rows can be removed'])
  expect(it.state).toEqual(STATE)
})

test('the absence of a synchronous standby is reported where commits wait for one', () => {
  const { notes, report: it } = report({ replicated: true })
  it.seen({ ...STATE, standbys: [standby('quorum')] })
  it.seen({ ...STATE, standbys: [standby('async')] })
  it.seen({ ...STATE, standbys: [] })
  it.seen({ ...STATE, standbys: null })
  it.seen({ ...STATE, standbys: [standby('sync')] })
  expect(notes).toEqual([
    'warning: no synchronous standby is connected to the database: commits, and so clients, wait for one',
    'info: a synchronous standby is connected to the database again',
  ])
  const primary = report()
  primary.report.seen(STATE)
  expect(primary.notes).toEqual([])
})

test('a node that does not own shard 0 reports nothing', () => {
  const { notes, report: it } = report({ reports: false, replicated: true })
  it.seen({ ...STATE, oldest: { age: 90_000, of: 'x' } })
  expect(notes).toEqual([])
})
