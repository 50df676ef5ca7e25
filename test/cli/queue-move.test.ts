import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { Events } from '../../src/telemetry/events.ts'
import { bounced, deferred, delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

let operator: Operator
let other: string
const CAME = NOW - 60_000

beforeEach(() => {
  operator = new Operator()
  other = mkdtempSync(join(tmpdir(), 'deferd-other-'))
})
afterEach(() => {
  operator.leave()
  rmSync(other, { recursive: true })
})

/** A deferred message, and one that has failed and whose notice is due. */
const fill = (): Promise<readonly string[]> =>
  operator.own(async (store) => {
    const waiting = await queue(store, { at: CAME, leased: true })
    await settleOne(store, waiting, deferred(first(waiting), NOW + 600_123), CAME)
    const failed = await queue(store, { at: CAME, leased: true, to: [{ address: 'bob@far.example' }] })
    await settleOne(store, failed, bounced(first(failed), CAME), CAME)
    const gone = await queue(store, { at: CAME, leased: true })
    await settleOne(store, gone, delivered(first(gone), CAME), CAME)
    return [waiting, failed, gone].map((id) => formatQueueId(CAME, id))
  })

const there = async (...words: readonly string[]) => operator.says(...words, '-o', `queue_directory=${other}`)

describe('without a daemon', () => {
  test('all mail moves, also with a notice due, and keeps queue id and due time; the old history says where it went', async () => {
    const [waiting = ''] = await fill()
    expect(await operator.says('queue', 'move', '--to', other)).toBe(`2 messages moved to ${other}\n`)
    expect(await operator.says('queue', 'list', '--count')).toBe('0\n')
    const [listed] = (await there('queue', 'list', '--json')).split('\n')
    expect(JSON.parse(listed ?? '')).toMatchObject({ queue_id: waiting, next_attempt_time: (NOW + 600_123) / 1000 })
    expect(await operator.says('queue', 'show', waiting)).toMatch(new RegExp(`moved to ${other}\\s+as\\s+${waiting}`))
    expect(await operator.says('audit', '--json')).toContain('"action":"move"')
    expect(JSON.parse(await operator.says('status', '--json'))).toMatchObject({ balance: { difference: 0 } })
    expect(JSON.parse(await there('status', '--json'))).toMatchObject({ balance: { difference: 0 } })
  })

  test('a final move takes history and audit log along; no daemon starts with the queue, until mail moves back', async () => {
    const [waiting = '', , gone = ''] = await fill()
    const said = await operator.says('queue', 'move', '--to', other, '--final')
    expect(said).toBe(
      `2 messages moved to ${other}; the whole queue is there now: set queue_directory = "${other}" and start deferd again\n`,
    )
    expect(await there('queue', 'show', gone)).toContain('delivered')
    expect(await there('queue', 'show', waiting)).not.toContain('moved to')
    expect(await there('audit')).toContain('--final')
    const start = () => startDaemon(daemonOf(operator.directory))
    await expect(start()).rejects.toMatchObject({ exitCode: 78, message: expect.stringContaining(`was moved to ${other}`) as string })
    await operator.says('queue', 'move', '--from', other, '--to', operator.directory, '--final')
    expect(await operator.says('queue', 'list', '--count')).toBe('1\n')
    const daemon = await start()
    await daemon.stop()
  })

  test('mail in the maildrop keeps a queue from being retired', async () => {
    await fill()
    mkdirSync(join(operator.directory, 'maildrop'))
    writeFileSync(join(operator.directory, 'maildrop', 'a'), '')
    expect(await operator.run(['queue', 'move', '--to', other, '--final'])).toMatchObject({
      code: 75,
      err: expect.stringContaining('start the daemon, then repeat') as string,
    })
  })

  test('places that cannot be a target', async () => {
    await fill()
    const refused = async (to: string) => {
      const { code, err } = await operator.run(['queue', 'move', '--to', to])
      return `${code} ${err}`
    }
    mkdirSync(join(other, 'links'))
    symlinkSync(operator.directory, join(other, 'links/one'))
    for (const itself of [operator.directory, join(other, 'links/one'), relative(process.cwd(), operator.directory)]) {
      expect(await refused(itself)).toBe(`64 deferd: --to ${itself} is the queue to move: name another place\n`)
    }
    for (const none of ['postgresql:mail', 'postgresql://db.example', 'mysql://u@h/mail']) {
      expect(await refused(none)).toBe(`64 deferd: cannot move to ${none}: it has not the form postgresql://USER@HOST/DATABASE\n`)
    }
    expect(await refused('postgresql://u:secret@127.0.0.1:1/mail')).toMatch(/^75 .*cannot move to postgresql:\/\/u@127\.0\.0\.1:1\/mail: /)
    writeFileSync(join(other, 'file'), '')
    expect(await refused(join(other, 'file'))).toMatch(/^78 .*it is not a folder/)
    const { close } = await openStore(other, { threads: false, create: true })
    expect(await refused(other)).toMatch(/^75 .*in use by process .* stop it, then repeat/)
    await close()
  })
})

const daemonOf = (directory: string) => ({
  loaded: configFrom({ queue_directory: directory, smtpd_listen: ['127.0.0.1:0'] }, 'relay.example'),
  events: new Events(() => NOW),
})
