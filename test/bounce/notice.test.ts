/** Who is told what: NOTIFY × outcome × RET × size, complete; the checks of Postfix's rules by their numbers. */
import { describe, expect, test } from 'vitest'
import { debtFor, nextWarning, noticesFor, warningAges, warningsUsed, whyNobodyIsTold, type OutcomeFacts } from '../../src/bounce/notice.ts'
import { parseNotice } from '../../src/bounce/notice-parser.ts'
import { HOUR } from '../../src/mail/clock.ts'
import type { Notify, Ret } from '../../src/mail/envelope.ts'
import type { Debt, Message, Recipient } from '../../src/queue/message.ts'
import {
  aMessage,
  ARRIVAL,
  aRecipient,
  delayed,
  expectValid,
  loaded,
  original,
  ORIGINAL,
  relayed,
  said,
  settingsOf,
  written,
} from '../support/notices.ts'

const DOUBLE_BOUNCE = 'double-bounce@relay.example'
const facts = (more: Partial<OutcomeFacts>): OutcomeFacts => ({
  outcome: 'bounced',
  notify: undefined,
  sender: 'app@us.example',
  doubleBounceSender: DOUBLE_BOUNCE,
  ...more,
})

const owing = (recipients: readonly Recipient[], message: Partial<Message> = {}) => ({
  message: aMessage(message),
  warnings: 0,
  recipients,
})

const NOTIFY: readonly (Notify | undefined)[] = [
  undefined,
  'never',
  ['success'],
  ['failure'],
  ['delay'],
  ['success', 'failure'],
  ['success', 'delay'],
  ['failure', 'delay'],
  ['success', 'failure', 'delay'],
]
const OUTCOMES = ['delivered', 'relayed', 'bounced', 'expired', 'deferred'] as const
const RETS: readonly (Ret | undefined)[] = [undefined, 'full', 'hdrs']
const SIZES = [49_000, 50_000, 50_001, 60_000]

/** RFC 3461 §4.1 and §5.2 in one table. */
function expectedDebt(outcome: OutcomeFacts['outcome'], notify: Notify | undefined): Debt | undefined {
  const words = notify === undefined ? ['failure', 'delay'] : notify === 'never' ? [] : notify
  if (outcome === 'delivered') return undefined
  const debt = outcome === 'relayed' ? 'success' : outcome === 'deferred' ? 'delay' : 'failure'
  return words.includes(debt) ? debt : undefined
}

const STATES = { delivered: 'delivered', relayed: 'delivered', bounced: 'bounced', expired: 'expired', deferred: 'waiting' } as const

describe('NOTIFY × outcome × RET × size', () => {
  const settings = settingsOf()
  for (const notify of NOTIFY) {
    for (const outcome of OUTCOMES) {
      const debt = debtFor(facts({ outcome, notify }))
      test(`NOTIFY=${String(notify ?? 'absent')}, ${outcome}: ${debt ?? 'nothing'} is owed`, () => {
        expect(debt).toBe(expectedDebt(outcome, notify))
      })
      for (const ret of RETS) {
        for (const size of SIZES) {
          test(`NOTIFY=${String(notify ?? 'absent')}, ${outcome}, RET=${ret ?? 'absent'}, ${size} bytes`, () => {
            const recipient = aRecipient(0, { notify, state: STATES[outcome], debt })
            const notices = noticesFor(owing([recipient], { ret, size }), settings.rules)
            if (debt === undefined) expect(notices).toEqual([])
            else {
              const returns = debt === 'failure' && ret !== 'hdrs' && size <= 50_000 ? 'full' : 'headers'
              expect(notices).toEqual([{ kind: debt, to: 'sender', address: 'app@us.example', from: '', recipients: [recipient], returns }])
            }
          })
        }
      }
    }
  }
})

describe('who is told', () => {
  test('37 · a notice has the null reverse-path and three parts in order', async () => {
    const settings = settingsOf()
    const [notice] = noticesFor(owing([aRecipient(0)]), settings.rules)
    if (notice === undefined) throw new Error('a notice is owed')
    expect(notice.from).toBe('')
    const { whole, text, status, returned } = expectValid(written(notice, aMessage(), await original(ORIGINAL, settings, 'full'), settings))
    expect(whole.fields.get('auto-submitted')).toBe('auto-replied')
    expect([whole.type, whole.parameters.get('report-type')]).toEqual(['multipart/report', 'delivery-status'])
    expect([text, status, returned].map(({ type }) => type)).toEqual(['text/plain', 'message/delivery-status', 'message/rfc822'])
  })

  test('43 · NOTIFY=NEVER and NOTIFY=SUCCESS hear nothing of a 550; NOTIFY=FAILURE nothing of a delay', () => {
    expect(debtFor(facts({ notify: 'never' }))).toBeUndefined()
    expect(debtFor(facts({ notify: ['success'] }))).toBeUndefined()
    expect(debtFor(facts({ notify: ['failure'], outcome: 'deferred' }))).toBeUndefined()
  })

  test('44 · of FAILURE, NEVER and no NOTIFY, all 550, the notice lists the first and the third', () => {
    const wishes: (Notify | undefined)[] = [['failure'], 'never', undefined]
    const recipients = wishes.map((notify, n) => aRecipient(n, { notify, debt: debtFor(facts({ notify })) }))
    const [notice, ...more] = noticesFor(owing(recipients), settingsOf().rules)
    expect(more).toEqual([])
    expect(notice?.recipients).toEqual([recipients[0], recipients[2]])
  })

  test('45 · success is reported where the next hop takes no reports over, and only there', () => {
    expect(debtFor(facts({ outcome: 'relayed', notify: ['success'] }))).toBe('success')
    expect(debtFor(facts({ outcome: 'delivered', notify: ['success'] }))).toBeUndefined()
    const [notice] = noticesFor(owing([relayed(0)]), settingsOf().rules)
    expect(notice).toMatchObject({ kind: 'success', returns: 'headers' })
  })

  test('46 · undeliverable notices vanish by default, with a reason for the log; with 2bounce the postmaster is told', async () => {
    expect(debtFor(facts({ sender: '' }))).toBeUndefined()
    expect(whyNobodyIsTold(facts({ sender: '' }))).toMatch(/not reported/)
    expect(whyNobodyIsTold(facts({ sender: '', outcome: 'relayed' }))).toBeUndefined()
    expect(debtFor(facts({ sender: '', classes: ['2bounce'] }))).toBe('failure')

    const settings = settingsOf(['notify_classes=2bounce'])
    const message = aMessage({ sender: '' })
    const [notice, ...more] = noticesFor({ message, warnings: 0, recipients: [aRecipient(0)] }, settings.rules)
    if (notice === undefined) throw new Error('the postmaster is owed a notice')
    expect(more).toEqual([])
    expect(notice).toMatchObject({ to: 'postmaster', address: 'postmaster@example.org', from: DOUBLE_BOUNCE, returns: 'full' })
    const { whole, text } = expectValid(written(notice, message, await original(ORIGINAL, settings, 'full'), settings))
    expect(whole.fields.get('auto-submitted')).toBe('auto-generated')
    expect(text.body).not.toContain('A message of yours')
  })

  test('47 · nobody is told of undeliverable mail to the postmaster', () => {
    const all = ['bounce', '2bounce', 'delay'] as const
    for (const outcome of OUTCOMES) {
      expect(
        debtFor(facts({ outcome, sender: DOUBLE_BOUNCE.toUpperCase(), classes: all, notify: ['success', 'failure', 'delay'] })),
      ).toBeUndefined()
    }
    expect(whyNobodyIsTold(facts({ sender: DOUBLE_BOUNCE }))).toMatch(/discarded/)
    const { rules } = settingsOf(['notify_classes=bounce'])
    const debts = [aRecipient(0), delayed(1), relayed(2)]
    expect(noticesFor(owing(debts, { sender: DOUBLE_BOUNCE }), rules)).toEqual([])
  })

  test('48 · notify_classes=bounce: the sender is told, and the postmaster gets the header', async () => {
    const settings = settingsOf(['notify_classes=bounce', 'bounce_notice_recipient=mail-team@ops.example'])
    const [own, copy] = noticesFor(owing([aRecipient(0)]), settings.rules)
    expect(own).toMatchObject({ to: 'sender', returns: 'full' })
    expect(copy).toMatchObject({ to: 'postmaster', address: 'mail-team@ops.example', from: DOUBLE_BOUNCE, returns: 'headers' })
    if (copy === undefined) throw new Error('a copy is owed')
    const { whole } = expectValid(written(copy, aMessage(), await original(ORIGINAL, settings, 'headers'), settings))
    expect(whole.fields.get('subject')).toBe('Postmaster Copy: Undelivered Mail')
  })

  test('the postmaster hears of recipients of whom the sender wants to hear nothing', () => {
    const classes = ['bounce'] as const
    expect(debtFor(facts({ notify: 'never', classes }))).toBe('failure')
    const { rules } = settingsOf(['notify_classes=bounce'])
    const recipients = [aRecipient(0, { notify: 'never' }), aRecipient(1)]
    const [own, copy] = noticesFor(owing(recipients), rules)
    expect(own?.recipients).toEqual([recipients[1]])
    expect(copy?.recipients).toEqual(recipients)
    expect(noticesFor(owing([aRecipient(0, { notify: 'never' })]), rules)).toMatchObject([{ to: 'postmaster' }])
  })

  test('notify_classes=delay: a copy of the warning; others get none', () => {
    const { rules } = settingsOf(['notify_classes=delay'])
    expect(noticesFor(owing([delayed(0)]), rules).map(({ to, kind, address }) => [to, kind, address])).toEqual([
      ['sender', 'delay', 'app@us.example'],
      ['postmaster', 'delay', 'postmaster@example.org'],
    ])
    expect(noticesFor(owing([aRecipient(0)]), rules)).toHaveLength(1)
    expect(noticesFor(owing([delayed(0)]), settingsOf(['notify_classes=bounce']).rules)).toHaveLength(1)
  })

  test('50 · mail from nobody is never warned of', () => {
    expect(debtFor(facts({ outcome: 'deferred', sender: '', classes: ['bounce', '2bounce', 'delay'] }))).toBeUndefined()
    expect(noticesFor(owing([delayed(0)], { sender: '' }), settingsOf(['notify_classes=delay,2bounce']).rules)).toEqual([])
  })

  test('52 · a warned sender is told of the delivery when confirm_delay_cleared says so', () => {
    expect(debtFor(facts({ outcome: 'relayed', delayCleared: true }))).toBe('success')
    expect(debtFor(facts({ outcome: 'delivered', delayCleared: true, notify: ['delay'] }))).toBe('success')
    expect(debtFor(facts({ outcome: 'delivered', delayCleared: true, notify: ['failure'] }))).toBeUndefined()
  })

  test('53 · of a message that expires when its warning is due, only the failure is told', () => {
    // The outcome overwrites the debt: a recipient owes one word at a time.
    const recipients = [aRecipient(0, { state: 'expired', debt: debtFor(facts({ outcome: 'expired' })) })]
    expect(noticesFor(owing(recipients), settingsOf().rules).map(({ kind }) => kind)).toEqual(['failure'])
  })

  test('36 · one message, three fates: each notice names its own recipients', () => {
    const recipients = [relayed(0, { notify: ['success'] }), aRecipient(1), delayed(2)]
    const notices = noticesFor(owing(recipients), settingsOf().rules)
    expect(notices.map(({ kind, recipients: [one] }) => [kind, one?.address])).toEqual([
      ['failure', 'user1@example.net'],
      ['delay', 'user2@example.net'],
      ['success', 'user0@example.net'],
    ])
  })

  test('success of mail from nobody is reported to the postmaster with 2bounce only', () => {
    expect(debtFor(facts({ outcome: 'relayed', sender: '', notify: ['success'] }))).toBeUndefined()
    expect(debtFor(facts({ outcome: 'relayed', sender: '', notify: ['success'], classes: ['2bounce'] }))).toBe('success')
    expect(noticesFor(owing([relayed(0)], { sender: '' }), settingsOf(['notify_classes=2bounce']).rules)).toMatchObject([
      { to: 'postmaster', kind: 'success', returns: 'headers' },
    ])
    expect(noticesFor(owing([relayed(0)], { sender: '' }), settingsOf().rules)).toEqual([])
  })

  test('55 · where a field needs a sender, mail from nobody shows MAILER-DAEMON', async () => {
    const settings = settingsOf(['notify_classes=2bounce'])
    const message = aMessage({ sender: '' })
    const [notice] = noticesFor({ message, warnings: 0, recipients: [aRecipient(0)] }, settings.rules)
    if (notice === undefined) throw new Error('the postmaster is owed a notice')
    const { status, returned } = expectValid(written(notice, message, await original(ORIGINAL, settings, 'full'), settings))
    expect(status.body).toContain('X-Deferd-Sender: rfc822; MAILER-DAEMON@relay.example\r\n')
    expect(returned.body).toMatch(/^Return-Path: <MAILER-DAEMON@relay\.example>\r\n/)
  })
})

describe('39, 40 · how much comes back', () => {
  const cases: readonly (readonly [size: number, ret: Ret | undefined, type: string, description: string])[] = [
    [49_000, undefined, 'message/rfc822', 'Undelivered Message'],
    [60_000, undefined, 'text/rfc822-headers', 'Undelivered Message Headers'],
    [1_024, 'hdrs', 'text/rfc822-headers', 'Undelivered Message Headers'],
    [60_000, 'full', 'text/rfc822-headers', 'Undelivered Message Headers'],
    [49_000, 'full', 'message/rfc822', 'Undelivered Message'],
  ]
  for (const [size, ret, type, description] of cases) {
    test(`${size} bytes, RET ${ret ?? 'absent'}: ${type}`, async () => {
      const settings = settingsOf()
      const octets =
        ORIGINAL +
        'x'
          .repeat(70)
          .concat('\r\n')
          .repeat(1_000)
          .slice(0, size - ORIGINAL.length - 2) +
        '\r\n'
      const message = aMessage({ ret, size: octets.length })
      const [notice] = noticesFor({ message, warnings: 0, recipients: [aRecipient(0)] }, settings.rules)
      if (notice === undefined) throw new Error('a notice is owed')
      const dsn = written(notice, message, await original(octets, settings, notice.returns), settings)
      const { returned } = expectValid(dsn)
      expect(returned.type).toBe(type)
      expect(returned.fields.get('content-description')).toBe(description)
      expect(parseNotice(dsn.content)?.original?.includes('The text.')).toBe(type === 'message/rfc822')
    })
  }
})

describe('delay warnings in time', () => {
  const ages = warningAges(loaded(['delay_warning_time=24h, 4h, 0, 4h']).config)

  test('ages are taken in order, once each, and 0 means never', () => {
    expect(ages).toEqual([4 * HOUR, 24 * HOUR])
    expect(warningAges(loaded().config)).toEqual([])
  })

  test('the next warning follows from how many are used up', () => {
    expect([0, 1, 2].map((used) => nextWarning(ages, ARRIVAL, used))).toEqual([ARRIVAL + 4 * HOUR, ARRIVAL + 24 * HOUR, null])
  })

  test('a warning after both ages uses both up', () => {
    expect(warningsUsed(ages, ARRIVAL, ARRIVAL + 4 * HOUR, 0)).toBe(1)
    expect(warningsUsed(ages, ARRIVAL, ARRIVAL + 30 * HOUR, 0)).toBe(2)
    expect(warningsUsed(ages, ARRIVAL, ARRIVAL + 5 * HOUR, 2)).toBe(2)
  })

  test('what the far side said last stands in the warning', async () => {
    const settings = settingsOf()
    const [notice] = noticesFor(owing([delayed(0, { last: said('451 4.7.1 greylisted') })]), settings.rules)
    if (notice === undefined) throw new Error('a warning is owed')
    const parsed = parseNotice(written(notice, aMessage(), await original(ORIGINAL, settings, 'headers'), settings).content)
    expect(parsed?.recipients).toMatchObject([{ action: 'delayed', status: '4.7.1', diagnostic: '451 4.7.1 greylisted' }])
  })
})
