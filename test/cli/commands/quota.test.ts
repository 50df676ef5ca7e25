/** `deferd quota`, without a daemon. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { HOUR, MINUTE } from '../../../src/system/clock.ts'
import { Operator } from '../../support/operator.ts'

let operator: Operator

/** Begin of the slice of an hour in which the charges are. */
let begin: number

beforeEach(async () => {
  operator = new Operator()
  const { system } = operator.defaultFiles
  mkdirSync(dirname(system))
  writeFileSync(system, '[quota.app]\nkeys = "sender"\nlimits = ["2/1h"]\naction = "hold"\n')
  const { store, close } = await openStore(operator.directory, { threads: false, create: true })
  begin = Math.floor(operator.clock.now() / (5 * MINUTE)) * 5 * MINUTE
  const charge = { quota: 'app', span: HOUR, begin, recipients: 1, until: begin + 65 * MINUTE }
  const later = { ...charge, begin: begin + 65 * MINUTE, until: begin + 130 * MINUTE }
  await store.records.quotaCounts.charge([
    { ...charge, key: 'ann@us.example', messages: 2 },
    { ...later, key: 'ann@us.example', messages: 1 },
    { ...charge, key: 'bob@us.example', messages: 1 },
  ])
  await close()
})
afterEach(() => operator.leave())

const says = (...argv: readonly string[]) => operator.says('quota', ...argv)
const run = (...argv: readonly string[]) => operator.run(['quota', ...argv])

test('lists the fullest quotas, shows those of a key, and resets them, with a record in the audit log', async () => {
  const heading = 'KEY +QUOTA +LIMIT +USED +HELD +ROOM\n'
  const ann = 'ann@us\\.example +app +2/1h +2 +1 +in .*\n'
  expect(await says('list')).toMatch(new RegExp(`^${heading}${ann}bob@us\\.example +app +2/1h +1 +now\n$`))
  expect(await says('show', 'ann@us.example')).toMatch(new RegExp(`^${heading}${ann}$`))
  expect(JSON.parse(await says('show', 'ann@us.example', '--json'))).toEqual({
    quota: 'app',
    key: 'ann@us.example',
    keys: 'sender',
    action: 'hold',
    limit: '2/1h',
    measure: 'messages',
    span: 3_600,
    used: 2,
    planned: 1,
    maximum: 2,
    refuses: false,
    room_time: (begin + 65 * MINUTE) / 1_000,
  })
  expect(await run('reset', 'ann@us.example', '--quota', 'other')).toMatchObject({ code: 65 })
  expect(await says('reset', 'ann@us.example')).toBe('ann@us.example: counts are reset\n')
  expect(await run('show', 'ann@us.example')).toMatchObject({ code: 65 })
  expect(JSON.parse(await operator.says('audit', '--json'))).toMatchObject({ action: 'quota-reset', arguments: 'ann@us.example' })
  await says('reset', 'bob@us.example')
  expect(await says('list')).toBe('No quota is used.\n')
})
