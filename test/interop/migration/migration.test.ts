/**
 * The move of a machine from Postfix to deferd, with mail in all queues: nothing is lost or doubled, and every envelope and header
 * is that of Postfix for the same input.
 */
import { execFileSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../../support/required.ts'
import { USERS } from './configuration.ts'
import { callsOfPrograms, Inputs, type Input } from './inputs.ts'
import { Machine, type Relay } from './machine.ts'
import { outcomesOf } from './outcomes.ts'
import { Acceptance, Smarthost } from './smarthosts.ts'
import { submitted } from './submission.ts'

const reason = reasonToSkip('interop', await postfixIsMissing())

const hasMutt = (): boolean => {
  try {
    execFileSync('mutt', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Mail that is not left in the maildrop here: what header_checks and body_checks refuse, which the import leaves there, and an 8-bit
 * header, with which Postfix sends mail of sendmail only to servers that offer SMTPUTF8 (docs/import.md).
 */
const REFUSED = /^Subject: (?:lottery|gr)|^password:/m

const SPOOLED = 500
/** Messages that are deferred or on hold before the queue manager is stopped. */
const FIRST_FILLED = 410
const NEW_MAIL = 240

/** Messages by number, one line of text for each recipient of each delivery. */
type Outcomes = ReadonlyMap<number, readonly string[]>

/** Everything that a relay did with the mail of the spool, and with new mail. */
interface Observed {
  readonly replies: readonly (readonly string[])[]
  readonly codes: readonly number[]
  readonly left: number
  readonly outcomes: Outcomes
}

const absent = reason !== null ? ` (not run: ${reason})` : hasMutt() ? '' : ' (without mutt, which is not installed)'

describe.skipIf(reason !== null)(`the move of a machine from Postfix${absent}`, () => {
  const acceptance = new Acceptance()
  const inputs = new Inputs(19)
  const newMail = Array.from({ length: NEW_MAIL }, (_, n) => inputs.next(10_000 + n))
  let smarthosts: readonly Smarthost[] = []
  let machine: Machine
  const queues: Record<string, number> = {}
  let before: Outcomes
  let imported: Awaited<ReturnType<Machine['importPostfix']>>[] = []
  let [deferd, postfix]: readonly (Observed | null)[] = [null, null]

  beforeAll(async () => {
    const open = (name: string, isWrapped: boolean) => Smarthost.open({ name, isWrapped, users: USERS }, acceptance)
    smarthosts = [await open('submission', false), await open('news', false), await open('smtps', true)]
    const [submission = 0, news = 0, smtps = 0] = smarthosts.map(({ port }) => port)
    machine = await Machine.make({ submission, news, smtps })
    acceptance.isDeferring = true
    await fillSpool()
    before = outcomesOf(acceptance.take())
    acceptance.isDeferring = false
    imported = [await machine.importPostfix(), await machine.importPostfix()]
    deferd = await observe(await machine.startDeferd())
    postfix = await observe(await machine.startPostfix())
  }, 240_000)

  afterAll(async () => {
    await machine?.remove()
    for (const one of smarthosts) one.close()
  })

  /** Leaves 500 messages in the queues of Postfix: deferred, on hold, incoming and in the maildrop. */
  async function fillSpool(): Promise<void> {
    const relay = await machine.startPostfix()
    const count = () => ['deferred', 'hold', 'active', 'incoming'].reduce((sum, queue) => sum + machine.spooled(queue), 0)
    let number = 0
    // Files are counted when none moves from one queue to another.
    for (let missing = FIRST_FILLED; missing > 0; missing = FIRST_FILLED - count()) {
      const length = Math.min(60, missing)
      await submitAll(Array.from({ length }, () => inputs.next(number++, number % 5 === 0 ? 'done@now.test' : undefined)))
      await eventually(async () => machine.spooled('active') + machine.spooled('incoming') === 0)
    }
    machine.freeze()
    await submitAll(Array.from({ length: 60 }, () => inputs.next(number++)))
    await relay.stop()
    while (count() + machine.spooled('maildrop') < SPOOLED) {
      const input = inputs.next(number++)
      if (!REFUSED.test(input.content)) await submitLocally(relay, input)
    }
    for (const queue of ['deferred', 'hold', 'active', 'incoming', 'maildrop']) queues[queue] = machine.spooled(queue)
  }

  /** Delivers the mail of the queue, then new mail of clients and programs, and stops the relay. */
  async function observe(relay: Relay): Promise<Observed> {
    await relay.flush()
    await quiet()
    const replies = await submitAll(newMail)
    const calls = callsOfPrograms(20_000).map(({ args, input }) => machine.run(relay.sendmail, args, input))
    const ofMutt = hasMutt() ? [0, 1, 2, 3].map((n) => mutt(relay, 30_000 + n, n)) : []
    const codes = (await Promise.all([...calls, ...ofMutt])).map(({ code }) => code)
    await quiet()
    await eventually(async () => {
      await relay.release()
      await relay.flush()
      return (await relay.queued()) === 0
    })
    await quiet()
    const left = await relay.queued()
    await relay.stop()
    return { replies, codes, left, outcomes: outcomesOf(acceptance.take()) }
  }

  const mutt = (relay: Relay, number: number, n: number) => {
    const settings = ['set copy=no', 'set use_from=yes', 'set realname="Ann Example"', `set sendmail="${relay.sendmail} -oem -oi"`]
    const own = [`set from=${n % 2 === 0 ? 'ann@a.test' : 'root@origin.example'}`, `set use_envelope_from=${n < 2 ? 'yes' : 'no'}`]
    const commands = [...settings, ...own, `my_hdr X-Number: ${number}`, 'my_hdr X-Program: mutt'].flatMap((text) => ['-e', text])
    const attachment = n % 2 === 0 ? ['-a', '/etc/hostname', '--'] : ['--']
    const args = ['-F', '/dev/null', '-n', ...commands, '-s', `mutt ${n}`, '-c', 'eve.x@b.test', '-b', 'hidden@c.test', ...attachment]
    return machine.run('mutt', [...args, 'ann@b.test', 'root'], 'Hello.\nFrom mutt gr\xc3\xbc\xc3\x9fe\n')
  }

  const submitAll = (mails: readonly Input[]) => submitted(machine.port, mails)

  const submitLocally = async (relay: Relay, { number, sender, recipients, content }: Input): Promise<void> => {
    const options = [[], ['-N', 'failure,delay'], ['-N', 'never'], ['-R', 'hdrs', '-V', `id-${number}`]][number % 4] ?? []
    const args = ['-i', ...options, '-f', sender, '--', ...recipients.map(({ address }) => address)]
    await machine.run(relay.sendmail, args, `X-Local: yes\n${content.replaceAll('\r\n', '\n')}`)
  }

  /** Waits until nothing was accepted for a second. */
  async function quiet(): Promise<void> {
    let last = -1
    for (let since = Date.now(); Date.now() - since < 1000;) {
      if (acceptance.accepted.length !== last) since = Date.now()
      last = acceptance.accepted.length
      await pause(100)
    }
  }

  test('the spool has 500 messages in all queues', () => {
    expect(queues['deferred']).toBeGreaterThan(250)
    for (const queue of ['hold', 'incoming', 'maildrop']) expect(queues[queue]).toBeGreaterThan(15)
    expect(Object.values(queues).reduce((sum, count) => sum + count, 0)).toBe(SPOOLED)
    expect(before.size).toBeGreaterThan(30)
  })

  test('the import takes over each message once, and deferd accepts the configuration', async () => {
    expect(imported.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ])
    // The columns after the recipients: known before, finished or discarded by header_checks, incomplete, left.
    expect(imported[0]?.out).toMatch(new RegExp(`^all +${SPOOLED} +\\d+ +[\\d,]+ +0 +\\d+ +0 +0$`, 'm'))
    expect(imported[1]?.out).toContain('0 messages with 0 recipients taken over')
    expect((await machine.deferd('check')).out.split('\n').filter((line) => line.startsWith('error'))).toEqual([])
  })

  test('replies to new mail and exit codes of sendmail are those of Postfix', () => {
    const different = newMail.flatMap((input, n) =>
      JSON.stringify(deferd?.replies[n]) === JSON.stringify(postfix?.replies[n])
        ? []
        : [{ input, deferd: deferd?.replies[n], postfix: postfix?.replies[n] }],
    )
    expect(different.slice(0, 3)).toEqual([])
    expect(deferd?.codes).toEqual(postfix?.codes)
  })

  test('every message reaches the smarthosts once, with the envelope and the header that Postfix sends', () => {
    const numbers = [...new Set([...(deferd?.outcomes.keys() ?? []), ...(postfix?.outcomes.keys() ?? [])])]
    const different = numbers.flatMap((number) => {
      const [own, reference] = [deferd?.outcomes.get(number), postfix?.outcomes.get(number)]
      return JSON.stringify(own) === JSON.stringify(reference) ? [] : [{ number, deferd: own, postfix: reference }]
    })
    expect(different.slice(0, 3)).toEqual([])
    expect([deferd?.left, postfix?.left]).toEqual([0, 0])
    // The spool has several files of a message that local(8) has forwarded.
    expect(numbers.filter((number) => number < 10_000).length).toBeGreaterThan(300)
    expect(numbers.filter((number) => number >= 10_000).length).toBeGreaterThan(NEW_MAIL / 2)
  })
})

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  for (let n = 0; n < 600; n++) {
    if (await holds()) return
    await pause(100)
  }
  throw new Error('the expected state was not reached in 60 s')
}
