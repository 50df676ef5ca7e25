/** Replies on the page: code, enhanced code and text first, host and prefix later, and nothing is lost. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { html } from '../../src/presentation/html.ts'
import { replyPart, shownReply } from '../../src/page/markup/reply.ts'

test('the reply stands before its host, command and prefix', () => {
  expect(shownReply('host mx.example[192.0.2.1] said: 421 4.7.28 unusual rate (in reply to end of DATA command)')).toEqual({
    codes: '421 4.7.28',
    text: 'unusual rate',
    about: 'mx.example[192.0.2.1], in reply to end of DATA command',
  })
  expect(shownReply('delivery temporarily suspended: host mx.example[2001:db8::1] said: 450 busy (in reply to RCPT TO command)')).toEqual({
    codes: '450',
    text: 'busy',
    about: 'mx.example[2001:db8::1], in reply to RCPT TO command, delivery temporarily suspended',
  })
  expect(shownReply('connect to mx.example[192.0.2.1]:25: Connection refused')).toEqual({
    codes: '',
    text: 'Connection refused',
    about: 'connect to mx.example[192.0.2.1]:25',
  })
  expect(shownReply('SASL authentication failed; server mx.example[192.0.2.1] said: 535 5.7.8 no')).toEqual({
    codes: '535 5.7.8',
    text: 'no',
    about: 'mx.example[192.0.2.1], SASL authentication failed',
  })
  expect(shownReply('host mx.example[192.0.2.1] refused to talk to me: 421 4.3.2 too busy')).toEqual({
    codes: '421 4.3.2',
    text: 'too busy',
    about: 'mx.example[192.0.2.1], refused to talk to me',
  })
  expect(shownReply('TLS is required, but host mx.example[192.0.2.1] refused to start TLS: 454 4.7.0 no')).toEqual({
    codes: '454 4.7.0',
    text: 'no',
    about: 'mx.example[192.0.2.1], refused to start TLS, TLS is required',
  })
})

test('a reply alone and other reasons stay as they are', () => {
  for (const [whole, codes, text] of [
    ['250 2.0.0 Ok (queued)', '250 2.0.0', 'Ok (queued)'],
    ['452 4.2.2', '452 4.2.2', ''],
    ['554', '554', ''],
    [
      'lost connection with mx.example[192.0.2.1] while sending RCPT TO',
      '',
      'lost connection with mx.example[192.0.2.1] while sending RCPT TO',
    ],
    ['5500 messages', '', '5500 messages'],
  ] as const)
    expect(shownReply(whole)).toEqual({ codes, text, about: null })
})

test('a long reply, and one with a host, can be opened; a short one is plain', () => {
  const shown = (whole: string) => html`${replyPart(whole)}`.markup
  expect(shown('450 4.2.1 busy')).toBe('<span class="reply"><strong>450 4.2.1</strong> busy</span>')
  expect(shown(`450 4.2.1 ${'x'.repeat(60)}`)).toContain('<details class="reply">')
  expect(shown('host mx.example[192.0.2.1] said: 450 busy')).toMatch(
    /<summary><span class="said"><strong>450<\/strong> busy<\/span><\/summary>[^]*mx\.example\[192\.0\.2\.1\]/,
  )
})

test('no word of any reason is lost', () => {
  const word = fc.constantFrom(
    'host',
    'said:',
    'refused to talk to me:',
    'server',
    'mx[192.0.2.1]',
    '421',
    '4.7.28',
    '(in reply to',
    'DATA)',
    'connect to',
    ':25:',
    'x',
    '<b>',
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), (words) => {
      const whole = words.join(' ')
      const { codes, text, about } = shownReply(whole)
      const shown = `${codes} ${text} ${about ?? ''}`
      const kept = whole.replace(/(?:host|server) (\S+) (?:said: |(?=refused))/, '$1 ').split(/[\s,:()]+/)
      for (const one of kept) expect(shown.includes(one), `${one} of ${whole}`).toBe(true)
    }),
  )
})
