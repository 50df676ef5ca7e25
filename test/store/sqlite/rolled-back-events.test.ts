/** Events of a transaction that is rolled back after its calls have run: none is kept, and those of later calls are. */
import { expect, test } from 'vitest'
import { openCore } from '../../../src/store/sqlite/core/open-core.ts'
import type { Call, Outcome } from '../../../src/store/methods.ts'
import { event, SETTINGS } from '../../conformance/outbox.ts'
import { T0 } from '../../conformance/mail.ts'

test('the events of a failed transaction are not written with the next one', () => {
  const { db, batches } = openCore(null, { inThread: false })
  const run = (...calls: readonly Call[]): readonly Outcome[] => batches.run(calls)
  const record = (value: string): Call => ({ method: 'recordEvents', args: [[event('message.accepted', [value])]] })
  run({ method: 'subscribe', args: [{ name: 'app', settings: SETTINGS, at: T0, by: 'root' }] })
  db.exec(`create temp trigger full before insert on main.event begin select raise(abort, 'no room for events'); end`)
  for (const outcome of run(record('lost'), record('lost too'))) expect(outcome).toMatchObject({ ok: false })
  db.exec('drop trigger full')
  expect(run(record('kept'))).toMatchObject([{ ok: true }])
  const [pulled] = run({ method: 'pullEvents', args: ['app', 10] })
  expect(pulled).toMatchObject({ value: { events: [{ data: '["kept"]' }] } })
  db.close()
})
