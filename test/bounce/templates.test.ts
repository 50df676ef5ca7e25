/** Texts of notices from a file, in the format of bounce(5): used unchanged, or refused with all mistakes. */
import { describe, expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { previewNotice } from '../../src/bounce/notice-preview.ts'
import { parseNotice } from '../../src/bounce/dsn-parser.ts'
import { ConfigError } from '../../src/config/values/problem.ts'
import { days } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { loaded, settingsOf, takeApart } from '../support/notices.ts'

const GERMAN = `# Texte auf Deutsch
failure_template = <<EOF
Charset: utf-8
From: Postmeister <postmaster@example.org>
Subject: =?utf-8?q?Unzustellbar?=
Postmaster-Subject: Kopie

Hier ist \${myhostname} in $(mydomain). Das kostet 5 $$.
Größe höchstens $bounce_size_limit Bytes, Frist $maximal_queue_lifetime_days Tage.
EOF

success_template = <<ENDE
From: MAILER-DAEMON (Mail Delivery System)
Subject: Angekommen

Alles gut.
ENDE
`

const load = (content: string, overrides: readonly string[] = []) => loadTemplates(loaded(overrides), { path: 'bounce.cf', content })

function problemsOf(content: string): readonly string[] {
  try {
    load(content)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ where, text }) => `${where}: ${text}`)
    throw error
  }
  return []
}

const template = (header: string, text = 'Text.', name = 'failure_template') => `${name} = <<EOF\n${header}\n\n${text}\nEOF\n`

describe('a template file', () => {
  test('replaces the templates it has and leaves the others', () => {
    const { templates, warnings } = load(GERMAN)
    expect(templates.failure).toEqual({
      charset: 'utf-8',
      from: 'Postmeister <postmaster@example.org>',
      subject: '=?utf-8?q?Unzustellbar?=',
      postmasterSubject: 'Kopie',
      text: ['Hier ist relay.example in example. Das kostet 5 $.', 'Größe höchstens 50000 Bytes, Frist 2 Tage.'],
    })
    expect(templates.success.from).toBe('Mail Delivery System <MAILER-DAEMON@example.org>')
    expect(templates.delay.subject).toBe('Delayed Mail (still being retried)')
    expect(warnings).toEqual([])
  })

  test('is sent in its charset', () => {
    const clock = new VirtualClock()
    const failure = takeApart(previewNotice('failure', settingsOf([], GERMAN), { clock, lifetime: days(2) }))
    expect(failure.text.parameters.get('charset')).toBe('utf-8')
    expect(failure.text.fields.get('content-transfer-encoding')).toBe('8bit')
    expect(failure.whole.fields.get('subject')).toBe('=?utf-8?q?Unzustellbar?=')
    expect(takeApart(previewNotice('success', settingsOf([], GERMAN), { clock, lifetime: days(2) })).text.parameters.get('charset')).toBe(
      'us-ascii',
    )
  })

  test('expands times in every unit, rounded down', () => {
    const units = ['seconds', 'minutes', 'hours', 'days', 'weeks']
    const lines = units.map((unit) => `$delay_warning_time_${unit} $maximal_queue_lifetime_${unit}`).join('\n')
    const { templates, warnings } = load(template('Subject: x', lines), ['delay_warning_time=36h', 'maximal_queue_lifetime=15d'])
    expect(templates.failure.text).toEqual(['129600 1296000', '2160 21600', '36 360', '1 15', '0 2'])
    expect(warnings.map((warning) => warning.replace(/;.*/, ''))).toEqual([
      'bounce.cf:4: $delay_warning_time_seconds reads 129600',
      'bounce.cf:4: $maximal_queue_lifetime_seconds reads 1296000',
      'bounce.cf:5: $delay_warning_time_minutes reads 2160',
      'bounce.cf:5: $maximal_queue_lifetime_minutes reads 21600',
      'bounce.cf:8: $delay_warning_time_weeks reads 0',
    ])
  })

  const fields = 'failure_template: expected Charset, From, Subject or Postmaster-Subject'
  const names = 'failure_template, delay_template, success_template, verify_template'
  const refused: readonly (readonly [what: string, content: string, problem: string])[] = [
    ['a line outside of templates', 'hello\n', '1: expected "name = <<END", the lines of a template and END'],
    ['an unknown template', template('Subject: x', 'y', 'bounce_template'), `1: unknown template bounce_template; there are ${names}`],
    ['the same template twice', template('Subject: x') + template('Subject: y'), '6: failure_template is given twice'],
    ['a template without an end', 'failure_template = <<EOF\nSubject: x\n\nText\n', '1: the line EOF that ends the template is missing'],
    [
      'a template without a text',
      'failure_template = <<EOF\nSubject: x\nEOF\n',
      '1: failure_template: an empty line must part header and text',
    ],
    ['an unknown field', template('Subjekt: x'), `2: ${fields}`],
    [
      'a postmaster subject where there are no copies',
      template('Postmaster-Subject: x', 'y', 'success_template'),
      '2: success_template: expected Charset, From, Subject only',
    ],
    ['an empty field', template('Subject:'), '2: Subject is empty'],
    ['a field twice', template('Subject: x\nSubject: y'), '3: Subject is given twice'],
    ['a field that is not ASCII', template('Subject: Größe'), '2: Subject must be at most 200 characters of ASCII (RFC 2047 for others)'],
    ['a sender that is no mailbox', template('From: a <b'), '2: From must be an address, "Name <address>" or "address (Name)"'],
    ['a character set we do not write', template('Charset: iso-8859-1'), '2: Charset must be us-ascii or utf-8'],
    [
      'a text that is not what Charset says',
      template('Subject: x', 'ok\nGröße'),
      '5: failure_template: not ASCII; add "Charset: utf-8" to the template',
    ],
    ['an unknown parameter', template('Subject: x', 'see $nosuch'), '4: $nosuch is not a parameter'],
    ['a dollar alone', template('Subject: x', 'costs 5 $ now'), '4: $ is neither a variable nor $$'],
    ['a control character', template('Subject: x', 'bell \u0007'), '4: a control character'],
    ['a line that is too long', template('Subject: x', 'y'.repeat(241)), '4: a line of more than 240 characters'],
  ]
  for (const [what, content, problem] of refused) {
    test(`is refused for ${what}`, () => expect(problemsOf(content)).toEqual([`bounce.cf:${problem}`]))
  }

  test('is refused with all its problems at once', () => {
    expect(problemsOf(template('Subjekt: x\nSubject:', '$a $b'))).toHaveLength(4)
  })

  test('a verify template is checked too, since Postfix has one', () => {
    expect(problemsOf(template('Subject: x', 'y', 'verify_template'))).toEqual([])
    expect(problemsOf(template('Subject: x', '$nosuch', 'verify_template'))).toHaveLength(1)
  })
})

describe('a preview', () => {
  const kinds = [
    ['failure', 'failed'],
    ['delay', 'delayed'],
    ['success', 'relayed'],
  ] as const
  for (const [kind, action] of kinds) {
    test(`of ${kind} is a valid notice`, () => {
      const notice = parseNotice(previewNotice(kind, settingsOf(), { clock: new VirtualClock(), lifetime: days(2) }))
      expect(notice?.action).toBe(action)
      expect(notice?.text).toContain('the mail system at relay.example')
    })
  }
})
