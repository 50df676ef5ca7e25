/** newaliases while the daemon runs: mail that is accepted afterwards goes to the addresses of the changed table. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../../src/daemon/daemon.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { Operator } from '../../support/operator.ts'

let operator: Operator
let daemon: Daemon
let aliases: string

beforeEach(async () => {
  operator = new Operator()
  aliases = join(operator.directory, 'aliases')
  writeFileSync(aliases, 'root: ann@far.test\n')
  const settings = {
    queue_directory: operator.directory,
    myorigin: 'origin.example',
    smtpd_listen: '127.0.0.1:0',
    alias_maps: `texthash:${aliases}`,
    transport_maps: { '*': 'retry:later' },
  }
  daemon = await startDaemon({ loaded: configFrom(settings, 'relay.example'), events: new Events(() => systemClock.now()) })
})
afterEach(async () => {
  await daemon.stop()
  operator.leave()
})

const newaliases = () => operator.run([], { calledAs: 'newaliases', env: { DEFERD_ALIAS_MAPS: `texthash:${aliases}` } })

/** Sends mail to root, and returns the recipients of all mail in the queue. */
async function recipientsAfterMailToRoot(): Promise<readonly string[]> {
  const env = { DEFERD_MYORIGIN: 'origin.example' }
  const more = { stdin: 'Subject: x\n\nx\n', env, clock: systemClock }
  const sent = await operator.run(['sendmail', '-v', 'root'], more)
  expect(sent).toMatchObject({ code: 0, out: expect.stringMatching(/^queued as /) as string, err: '' })
  const listed = (await operator.says('queue', 'list', '--json')).trim().split('\n')
  return listed.flatMap((line) => (JSON.parse(line) as { recipients: { address: string }[] }).recipients.map(({ address }) => address))
}

test('the relay uses the new aliases from then on; with a malformed table it keeps the former ones', async () => {
  expect(await recipientsAfterMailToRoot()).toEqual(['ann@far.test'])
  writeFileSync(aliases, 'root: bob@far.test\n')
  expect(await newaliases()).toEqual({ code: 0, out: '', err: '', asked: [] })
  expect(await recipientsAfterMailToRoot()).toEqual(['ann@far.test', 'bob@far.test'])
  writeFileSync(aliases, 'root: |/usr/bin/program\n')
  expect((await newaliases()).code).toBe(78)
  expect(await recipientsAfterMailToRoot()).toEqual(['ann@far.test', 'bob@far.test', 'bob@far.test'])
})

test('a table that the running configuration names, and that cannot be used, is reported with 78', async () => {
  writeFileSync(aliases, 'root: |/usr/bin/program\n')
  const { code, err } = await operator.run([], { calledAs: 'newaliases', env: { DEFERD_ALIAS_MAPS: 'inline:{root=ann@far.test}' } })
  expect([code, err]).toEqual([78, expect.stringMatching(/^deferd: .*alias_maps: .*program/)])
})
