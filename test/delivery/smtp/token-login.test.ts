/** Logins with an access token: the bytes of the mechanisms, challenges, and what a server may repeat. */
import { describe, expect, test } from 'vitest'
import { challengeReply, tokenOf, TokenHop, USER } from '../../support/token-hop.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const xoauth2 = (nth: number) => `AUTH XOAUTH2 ${base64(`user=${USER}\u0001auth=Bearer ${tokenOf(nth)}\u0001\u0001`)}`
const bearer = (nth: number) =>
  `AUTH OAUTHBEARER ${base64(`n,a=${USER},\u0001host=hop.example.com\u0001port=587\u0001auth=Bearer ${tokenOf(nth)}\u0001\u0001`)}`
const bearerOnly = { mechanisms: 'PLAIN OAUTHBEARER', config: ['smtp_sasl_mechanism_filter=oauthbearer'] }

describe('the mechanism', () => {
  test('XOAUTH2 has user and token', async () => {
    const hop = new TokenHop()
    expect((await hop.deliver()).of().outcome).toBe('delivered')
    expect(hop.authLines).toEqual([xoauth2(1)])
    expect(hop.requests).toBe(1)
  })

  test.each([
    ['a login with a token', {}, 'command'],
    ['a refused login with a token', { script: { auth: '535 5.7.3 no' } }, 'command'],
    ['a login with a password', { password: 'correct horse' }, undefined],
    ['a server that asks for no login', { script: { ehlo: '250-hop\r\n250 STARTTLS' } }, undefined],
  ])('of %s: the result has the table of the token', async (_case, options, table) => {
    expect((await new TokenHop(options).deliver()).oauth).toBe(table)
  })

  test('OAUTHBEARER has host and port too', async () => {
    const hop = new TokenHop(bearerOnly)
    expect((await hop.deliver()).of().outcome).toBe('delivered')
    expect(hop.authLines).toEqual([bearer(1)])
  })

  test('OAUTHBEARER in the old form of the EHLO line is found too', async () => {
    const script = { ehlo: '250-hop\r\n250-STARTTLS\r\n250-AUTH OAUTHBEARER\r\n250 AUTH=PLAIN LOGIN' }
    const hop = new TokenHop({ ...bearerOnly, script })
    expect((await hop.deliver()).of().outcome).toBe('delivered')
    expect(hop.authLines).toEqual([bearer(1)])
  })

  test('a user with a comma and an equals sign is quoted in OAUTHBEARER (RFC 5801)', async () => {
    const hop = new TokenHop({ ...bearerOnly, user: 'a=b,c@example.com' })
    await hop.deliver()
    expect(Buffer.from(hop.authLines[0]?.split(' ')[2] ?? '', 'base64').toString()).toContain('n,a=a=3Db=2Cc@example.com,\u0001host=')
  })

  test.each([
    ['XOAUTH2', {}, xoauth2, ''],
    ['OAUTHBEARER', bearerOnly, bearer, 'AQ=='],
  ])('%s: a challenge with the reason is answered, and the refused token replaced once', async (_name, options, line, answer) => {
    const reason = challengeReply({ status: '401', schemes: 'Bearer', scope: 'https://mail.example/' })
    const hop = new TokenHop({ ...options, script: { auth: [reason, '535 5.7.8 no', reason, '535 5.7.8 no'] } })
    const result = await hop.deliver()
    expect(hop.authLines).toEqual([line(1), answer, line(2), answer])
    expect(result.of()).toMatchObject({
      outcome: 'deferred',
      status: '4.7.8',
      reason:
        'SASL authentication failed; server hop.example.com[192.0.2.9] said: 535 5.7.8 no' +
        ' (challenge: status 401, schemes Bearer, scope https://mail.example/)',
    })
    expect(hop.requests).toBe(2)
  })

  test('a server that sends challenge after challenge is asked to cancel, and then given up', async () => {
    const cancelled = new TokenHop({ script: { auth: ['334 ', '334 ', '501 5.7.0 cancelled'] }, answer: async () => 'same-token\n3600' })
    expect((await cancelled.deliver()).of()).toMatchObject({ outcome: 'deferred', status: '4.7.0', reply: '501 5.7.0 cancelled' })
    expect(cancelled.authLines.slice(1)).toEqual(['', '*'])
    const endless = new TokenHop({ script: { auth: '334 ' } })
    expect((await endless.deliver()).of()).toMatchObject({ outcome: 'deferred', status: '4.5.0', stage: 'auth' })
    expect(endless.authLines.slice(1)).toEqual(['', '*'])
  })

  test.each(['PLAIN LOGIN XOAUTH2', 'XOAUTH2'])(
    'an empty password without a table is not sent where the server offers %s, and the reason says what to do',
    async (mechanisms) => {
      const hop = new TokenHop({ mechanisms, config: ['smtp_sasl_oauth_token_command='] })
      expect((await hop.deliver()).of()).toMatchObject({
        outcome: 'deferred',
        status: '4.7.0',
        stage: 'auth',
        reason: expect.stringMatching(
          /: the login has no password: write one, or name the \[oauth\.NAME\] table of its access token in smtp_sasl_oauth$/,
        ),
      })
      expect(hop.authLines).toEqual([])
    },
  )

  test.each(['OAUTHBEARER', 'XOAUTH2'])('%s is not used without TLS', async (mechanism) => {
    const config = ['smtp_tls_security_level=none']
    const hop = new TokenHop({ mechanisms: mechanism, config })
    expect((await hop.deliver()).of()).toMatchObject({ outcome: 'deferred', status: '4.7.0', stage: 'auth' })
    expect(hop.authLines).toEqual([])
  })

  test('a silent server times out', async () => {
    const hop = new TokenHop({ script: { auth: null } })
    const result = await hop.deliver()
    expect(result.of()).toMatchObject({ outcome: 'deferred', status: '4.4.2', stage: 'auth' })
    expect(result.took).toBe(300_000)
  })
})

describe('what a server repeats of the login', () => {
  const echo = (line: string) => line.split(' ')[2] ?? ''
  const decoded = (line: string) => Buffer.from(echo(line), 'base64').toString()
  const cases: readonly [string, (line: string) => string][] = [
    ['the line', (line) => `535 5.7.3 unknown command ${line}`],
    ['the line in capitals', (line) => `535 5.7.3 ${line.toUpperCase()}`],
    ['the first half of the line', (line) => `535 5.7.3 ${line.slice(0, 100)}`],
    ['the line, folded', (line) => `535-5.7.3 ${line.slice(0, 80)}\r\n535 5.7.3 ${line.slice(80)}`],
    ['what it decoded', (line) => `535 5.7.3 ${decoded(line)}`],
    ['the token', (line) => `535 5.7.3 token=${/Bearer ([\w.-]+)/.exec(decoded(line))?.[1]}; expired`],
    ['the token in a broken reply', (line) => `no reply ${decoded(line)}`],
  ]
  test.each(cases)('is concealed: %s', async (_what, reply) => {
    const hop = new TokenHop({ script: { auth: reply } })
    const result = await hop.deliver()
    const shown = JSON.stringify([[...result.outcomes], result.siteStatus, hop.far.notes])
    expect(shown).toContain('****')
    for (const nth of [1, 2]) {
      expect(shown).not.toContain(tokenOf(nth))
      expect(shown.toLowerCase()).not.toContain(echo(xoauth2(nth)).slice(0, 40).toLowerCase())
      expect(shown).not.toContain(echo(xoauth2(nth)).slice(90, 110))
    }
    expect(result.of().outcome).toBe('deferred')
  })

  test('is concealed in a challenge, and in replies to mail', async () => {
    const told = challengeReply({ status: '400', scope: `for ${tokenOf(2)}` })
    const hop = new TokenHop({ script: { auth: [told, '454 4.7.0 no', told, '454 4.7.0 no'] } })
    expect((await hop.deliver()).of().reason).toContain('(challenge: status 400, scope for ****)')
    const mail = new TokenHop({ script: { mail: `550 5.7.1 not with ${tokenOf(1)}` } })
    expect((await mail.deliver()).of()).toMatchObject({ reply: '550 5.7.1 not with ****' })
  })

  test('is concealed for a password too', async () => {
    const hop = new TokenHop({ password: 'correct horse', script: { auth: (line) => `535 5.7.8 no: ${line}, correct horse` } })
    expect((await hop.deliver()).of()).toMatchObject({ reply: '535 5.7.8 no: AUTH PLAIN ****, ****' })
  })
})
