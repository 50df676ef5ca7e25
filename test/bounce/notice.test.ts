/** Decision table of notices: NOTIFY × outcome × RET × size, complete, with Postfix's rules. */
import { describe, expect, test } from 'vitest'
import { DoubleBounce } from '../../src/config/double-bounce.ts'
import { noticeDueFor, noticesFor, warningAges, whyNotReported, type NoticeClasses, type OutcomeFacts } from '../../src/bounce/notice.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { HOUR } from '../../src/system/clock.ts'
import type { Notify, Ret } from '../../src/mail/envelope.ts'
import type { NoticeDue, Message, Recipient } from '../../src/mail/message.ts'
import {
  aMessage,
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
const doubleBounce = new DoubleBounce({ double_bounce_sender: 'double-bounce', myhostname: 'relay.example' }, () => ['mx2.example'])
const facts = (more: Partial<OutcomeFacts>): OutcomeFacts => ({
  outcome: 'bounced',
  notify: undefined,
  sender: 'app@us.example',
  ...more,
})

/** The notice due after an outcome, by these notify_classes. */
const dueFor = (more: Partial<OutcomeFacts>, classes: NoticeClasses = []) => noticeDueFor(facts(more), { classes, doubleBounce })
const whyNot = (more: Partial<OutcomeFacts>) => whyNotReported(facts(more), { classes: [], doubleBounce })

const withDue = (recipients: readonly Recipient[], message: Partial<Message> = {}) => ({
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
function expectedNotice(outcome: OutcomeFacts['outcome'], notify: Notify | undefined): NoticeDue | undefined {
  const words = notify === undefined ? ['failure', 'delay'] : notify === 'never' ? [] : notify
  if (outcome === 'delivered') return undefined
  const noticeDue = outcome === 'relayed' ? 'success' : outcome === 'deferred' ? 'delay' : 'failure'
  return words.includes(noticeDue) ? noticeDue : undefined
}

const STATES = { delivered: 'delivered', relayed: 'delivered', bounced: 'bounced', expired: 'expired', deferred: 'waiting' } as const

describe('NOTIFY × outcome × RET × size', () => {
  const settings = settingsOf()
  for (const notify of NOTIFY) {
    for (const outcome of OUTCOMES) {
      const noticeDue = dueFor({ outcome, notify })
      test(`NOTIFY=${String(notify ?? 'absent')}, ${outcome}: notice due: ${noticeDue ?? 'none'}`, () => {
        expect(noticeDue).toBe(expectedNotice(outcome, notify))
      })
      for (const ret of RETS) {
        for (const size of SIZES) {
          test(`NOTIFY=${String(notify ?? 'absent')}, ${outcome}, RET=${ret ?? 'absent'}, ${size} bytes`, () => {
            const recipient = aRecipient(0, { notify, state: STATES[outcome], noticeDue })
            const notices = noticesFor(withDue([recipient], { ret, size }), settings.rules)
            if (noticeDue === undefined) expect(notices).toEqual([])
            else {
              const returns = noticeDue === 'failure' && ret !== 'hdrs' && size <= 50_000 ? 'full' : 'headers'
              expect(notices).toEqual([
                { kind: noticeDue, to: 'sender', address: 'app@us.example', from: '', recipients: [recipient], returns },
              ])
            }
          })
        }
      }
    }
  }
})

describe('addressees', () => {
  test('a notice has the null reverse-path and three parts in order', async () => {
    const settings = settingsOf()
    const [notice] = noticesFor(withDue([aRecipient(0)]), settings.rules)
    if (notice === undefined) throw new Error('a notice is owed')
    expect(notice.from).toBe('')
    const { whole, text, status, returned } = expectValid(written(notice, aMessage(), await original(ORIGINAL, settings, 'full'), settings))
    expect(whole.fields.get('auto-submitted')).toBe('auto-replied')
    expect([whole.type, whole.parameters.get('report-type')]).toEqual(['multipart/report', 'delivery-status'])
    expect([text, status, returned].map(({ type }) => type)).toEqual(['text/plain', 'message/delivery-status', 'message/rfc822'])
  })

  test('NOTIFY=NEVER and NOTIFY=SUCCESS get no failure notice; NOTIFY=FAILURE no delay notice', () => {
    expect(dueFor({ notify: 'never' })).toBeUndefined()
    expect(dueFor({ notify: ['success'] })).toBeUndefined()
    expect(dueFor({ notify: ['failure'], outcome: 'deferred' })).toBeUndefined()
  })

  test('of FAILURE, NEVER and no NOTIFY, all 550, the notice lists the first and the third', () => {
    const wishes: (Notify | undefined)[] = [['failure'], 'never', undefined]
    const recipients = wishes.map((notify, n) => aRecipient(n, { notify, noticeDue: dueFor({ notify }) }))
    const [notice, ...more] = noticesFor(withDue(recipients), settingsOf().rules)
    expect(more).toEqual([])
    expect(notice?.recipients).toEqual([recipients[0], recipients[2]])
  })

  test('success is reported when the next hop does not announce DSN, and only then', () => {
    expect(dueFor({ outcome: 'relayed', notify: ['success'] })).toBe('success')
    expect(dueFor({ outcome: 'delivered', notify: ['success'] })).toBeUndefined()
    const [notice] = noticesFor(withDue([relayed(0)]), settingsOf().rules)
    expect(notice).toMatchObject({ kind: 'success', returns: 'headers' })
  })

  test('undeliverable notices are discarded by default with a logged reason; with 2bounce the postmaster gets them', async () => {
    expect(dueFor({ sender: '' })).toBeUndefined()
    expect(whyNot({ sender: '' })).toMatch(/not reported/)
    expect(whyNot({ sender: '', outcome: 'relayed' })).toBeUndefined()
    expect(dueFor({ sender: '' }, ['2bounce'])).toBe('failure')

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

  test('undeliverable mail to the postmaster is not reported', () => {
    const all = ['bounce', '2bounce', 'delay'] as const
    for (const outcome of OUTCOMES) {
      expect(dueFor({ outcome, sender: DOUBLE_BOUNCE.toUpperCase(), notify: ['success', 'failure', 'delay'] }, all)).toBeUndefined()
    }
    expect(whyNot({ sender: DOUBLE_BOUNCE })).toMatch(/discarded/)
    expect(whyNot({ sender: 'Double-Bounce@MX2.example' })).toMatch(/discarded/)
    for (const other of ['double-bounce@mx3.example', 'double-bounce', 'xdouble-bounce@mx2.example'])
      expect(dueFor({ sender: other }, all)).toBe('failure')
    const { rules } = settingsOf(['notify_classes=bounce'])
    const noticesDue = [aRecipient(0), delayed(1), relayed(2)]
    expect(noticesFor(withDue(noticesDue, { sender: DOUBLE_BOUNCE }), rules)).toEqual([])
  })

  test('notify_classes=bounce: the sender gets the notice, and the postmaster the header', async () => {
    const settings = settingsOf(['notify_classes=bounce', 'bounce_notice_recipient=mail-team@ops.example'])
    const [own, copy] = noticesFor(withDue([aRecipient(0)]), settings.rules)
    expect(own).toMatchObject({ to: 'sender', returns: 'full' })
    expect(copy).toMatchObject({ to: 'postmaster', address: 'mail-team@ops.example', from: DOUBLE_BOUNCE, returns: 'headers' })
    if (copy === undefined) throw new Error('a copy is owed')
    const { whole } = expectValid(written(copy, aMessage(), await original(ORIGINAL, settings, 'headers'), settings))
    expect(whole.fields.get('subject')).toBe('Postmaster Copy: Undelivered Mail')
  })

  test('the postmaster’s copy names recipients that NOTIFY excludes for the sender', () => {
    const classes = ['bounce'] as const
    expect(dueFor({ notify: 'never' }, classes)).toBe('failure')
    const { rules } = settingsOf(['notify_classes=bounce'])
    const recipients = [aRecipient(0, { notify: 'never' }), aRecipient(1)]
    const [own, copy] = noticesFor(withDue(recipients), rules)
    expect(own?.recipients).toEqual([recipients[1]])
    expect(copy?.recipients).toEqual(recipients)
    expect(noticesFor(withDue([aRecipient(0, { notify: 'never' })]), rules)).toMatchObject([{ to: 'postmaster' }])
  })

  test('notify_classes=delay: a copy of the warning; others get none', () => {
    const { rules } = settingsOf(['notify_classes=delay'])
    expect(noticesFor(withDue([delayed(0)]), rules).map(({ to, kind, address }) => [to, kind, address])).toEqual([
      ['sender', 'delay', 'app@us.example'],
      ['postmaster', 'delay', 'postmaster@example.org'],
    ])
    expect(noticesFor(withDue([aRecipient(0)]), rules)).toHaveLength(1)
    expect(noticesFor(withDue([delayed(0)]), settingsOf(['notify_classes=bounce']).rules)).toHaveLength(1)
  })

  test('no delay notice for the null sender', () => {
    expect(dueFor({ outcome: 'deferred', sender: '' }, ['bounce', '2bounce', 'delay'])).toBeUndefined()
    expect(noticesFor(withDue([delayed(0)], { sender: '' }), settingsOf(['notify_classes=delay,2bounce']).rules)).toEqual([])
  })

  test('with confirm_delay_cleared a warned sender gets a notice of the delivery', () => {
    expect(dueFor({ outcome: 'relayed', delayCleared: true })).toBe('success')
    expect(dueFor({ outcome: 'delivered', delayCleared: true, notify: ['delay'] })).toBe('success')
    expect(dueFor({ outcome: 'delivered', delayCleared: true, notify: ['failure'] })).toBeUndefined()
  })

  test('a message that expires when its delay notice is due gets the failure notice only', () => {
    // The outcome replaces the notice due: one is due for a recipient at a time.
    const recipients = [aRecipient(0, { state: 'expired', noticeDue: dueFor({ outcome: 'expired' }) })]
    expect(noticesFor(withDue(recipients), settingsOf().rules).map(({ kind }) => kind)).toEqual(['failure'])
  })

  test('a message with three outcomes: each notice names its own recipients', () => {
    const recipients = [relayed(0, { notify: ['success'] }), aRecipient(1), delayed(2)]
    const notices = noticesFor(withDue(recipients), settingsOf().rules)
    expect(notices.map(({ kind, recipients: [one] }) => [kind, one?.address])).toEqual([
      ['failure', 'user1@example.net'],
      ['delay', 'user2@example.net'],
      ['success', 'user0@example.net'],
    ])
  })

  test('success for the null sender is reported to the postmaster with 2bounce only', () => {
    expect(dueFor({ outcome: 'relayed', sender: '', notify: ['success'] })).toBeUndefined()
    expect(dueFor({ outcome: 'relayed', sender: '', notify: ['success'] }, ['2bounce'])).toBe('success')
    expect(noticesFor(withDue([relayed(0)], { sender: '' }), settingsOf(['notify_classes=2bounce']).rules)).toMatchObject([
      { to: 'postmaster', kind: 'success', returns: 'headers' },
    ])
    expect(noticesFor(withDue([relayed(0)], { sender: '' }), settingsOf().rules)).toEqual([])
  })

  test('fields that need a sender show MAILER-DAEMON for the null sender', async () => {
    const settings = settingsOf(['notify_classes=2bounce'])
    const message = aMessage({ sender: '' })
    const [notice] = noticesFor({ message, warnings: 0, recipients: [aRecipient(0)] }, settings.rules)
    if (notice === undefined) throw new Error('the postmaster is owed a notice')
    const { status, returned } = expectValid(written(notice, message, await original(ORIGINAL, settings, 'full'), settings))
    expect(status.body).toContain('X-Deferd-Sender: rfc822; MAILER-DAEMON@relay.example\r\n')
    expect(returned.body).toMatch(/^Return-Path: <MAILER-DAEMON@relay\.example>\r\n/)
  })
})

describe('RET and bounce_size_limit', () => {
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

describe('times of delay notices', () => {
  const ages = warningAges(loaded(['delay_warning_time=24h, 4h, 0, 4h']).config)({})

  test('ages are used in order, once each; 0 disables', () => {
    expect(ages).toEqual([4 * HOUR, 24 * HOUR])
    expect(warningAges(loaded().config)({})).toEqual([])
  })

  test('a delay notice quotes the last reply', async () => {
    const settings = settingsOf()
    const [notice] = noticesFor(withDue([delayed(0, { last: said('451 4.7.1 greylisted') })]), settings.rules)
    if (notice === undefined) throw new Error('a warning is owed')
    const parsed = parseNotice(written(notice, aMessage(), await original(ORIGINAL, settings, 'headers'), settings).content)
    expect(parsed?.recipients).toMatchObject([{ action: 'delayed', status: '4.7.1', diagnostic: '451 4.7.1 greylisted' }])
  })
})
