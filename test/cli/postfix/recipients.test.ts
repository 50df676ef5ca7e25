/**
 * Recipients that `sendmail` takes from header fields and arguments, compared with those that Postfix's sendmail(1) wrote to its
 * maildrop for the same input (recipients-by-postfix.json; `postcat -er` prints addresses without quotes).
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prepareMaildrop } from '../../../src/queue/intake/maildrop-writer.ts'
import { Operator } from '../../support/operator.ts'
import { maildropEnvelopes } from '../../support/maildrop-files.ts'

interface Recorded {
  readonly headers: readonly { readonly header: string; readonly recipients: readonly string[] }[]
  readonly arguments: readonly { readonly arguments: readonly string[]; readonly recipients: readonly string[] }[]
}

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'recipients-by-postfix.json'), 'utf8')) as Recorded

/** Malformed lists and addresses: Postfix guesses, drops a part or returns the mail later; `sendmail` ends with 65 and sends nothing. */
const MALFORMED: ReadonlySet<string> = new Set([
  'To: "Ann <ann@far.test>, Bob <bob@far.test>',
  'To: Ann" <ann@far.test>',
  'To: Ann <a@x.test>, "Bob',
  'To: a@x.test (unterminated, b@x.test',
  'To: a@[192.0.2.1',
  'To: Group: a@x.test, b@x.test',
  'To: a@x.test ) b@x.test',
  'To: <a@x.test',
  'To: Ann <a@x.test, b@x.test',
  'To: Ann a@x.test>',
  'To: <<a@x.test>>',
  'To: <a@x.test, b@x.test>',
  'To: <a@x.test b@x.test>',
  'To: a@x..test',
  'To: a@',
  'To: @x.test',
  'To: mailto:a@x.test',
  'To: <mailto:a@x.test>',
  'To: ""@x.test',
  'To: ""',
  'To: a@x.test:b@x.test',
  'To: a:b@x.test',
  'To: a\u0001b@x.test',
  'To: a@x.test\u007f',
  'To: [a@x.test]',
  'To: a@x.test [b@x.test]',
  'To: "a@x.test", \'b@x.test\'',
  '"Ann <a@x.test>',
  '',
  '(none)',
  '<>',
])

/** An address in the form that Postfix's maildrop holds, as sendmail hands it over: quoted, completed, without a source route. */
function inSmtp(raw: string): string {
  const bare = raw.replace(/^@[^:]+:/, '')
  const at = bare.lastIndexOf('@')
  const [local, domain] = at < 0 ? [bare, 'relay.example'] : [bare.slice(0, at), bare.slice(at + 1)]
  const isQuoted = !/^[^\s"(),.:;<>@[\\\]]+(?:\.[^\s"(),.:;<>@[\\\]]+)*$/.test(local)
  const ascii = new URL(`http://${domain.replace(/^\[.*\]$/, 'literal.test')}`).hostname.replace(/\.$/, '')
  return `${isQuoted ? `"${local.replaceAll(/["\\]/g, '\\$&')}"` : local}@${domain.startsWith('[') ? domain.toLowerCase() : ascii}`
}

describe('recipients', () => {
  let operator: Operator
  beforeEach(async () => {
    operator = new Operator()
    await prepareMaildrop(operator.directory)
  })
  afterEach(() => operator.leave())

  /** Exit code, standard error and the recipients of the message in the maildrop. */
  async function sent(argv: readonly string[], stdin: string) {
    const env = { DEFERD_SMTPD_LISTEN: '127.0.0.1:1', DEFERD_MYORIGIN: 'relay.example' }
    const { code, err } = await operator.run(['sendmail', '-i', ...argv], { stdin, env })
    const recipients = maildropEnvelopes(operator.directory).flatMap((envelope) => envelope.recipients.map(({ address }) => address))
    return { code, err, recipients: recipients.toSorted() }
  }

  const check = async (what: string, argv: readonly string[], stdin: string, byPostfix: readonly string[]) => {
    const { code, err, recipients } = await sent(argv, stdin)
    if (MALFORMED.has(what)) {
      expect([what, code, recipients]).toEqual([what, 65, []])
      expect(err).toMatch(
        /^deferd: sendmail: fatal: bad recipient address syntax: [^]*\ndeferd: sendmail: fatal: the message was not sent\n$/,
      )
    } else {
      const expected = [...new Set(byPostfix.map(inSmtp))].toSorted()
      expect([what, code, recipients]).toEqual([what, expected.length === 0 ? 64 : 0, expected])
    }
  }

  test.each(recorded.headers)('-t takes the addresses that Postfix takes: $header', ({ header, recipients }) =>
    check(header, ['-t'], `${header}\nSubject: x\n\nhi\n`, recipients),
  )

  test.each(recorded.arguments)('arguments are lists of addresses, as for Postfix: $arguments', ({ arguments: argv, recipients }) =>
    check(argv.join(' '), ['--', ...argv], 'Subject: x\n\nhi\n', recipients),
  )

  test('one malformed address among good ones: nothing is sent', async () => {
    const { code, recipients } = await sent(['-t', 'also@far.example'], 'To: ann@far.example, foo@bad..example\nSubject: x\n\nhi\n')
    expect([code, recipients]).toEqual([65, []])
  })
})
