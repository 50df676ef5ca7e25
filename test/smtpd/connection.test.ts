/** Input of hostile and broken clients, and the server's replies. */
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { openSmtpd, OUTSIDER } from '../support/smtpd-harness.ts'
import { OutcomeUnknown } from '../../src/store/queue-store.ts'
import { cutAt, segmentations } from '../support/segments.ts'

describe('lines and framing', () => {
  test('commands that end in a bare LF are accepted', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'DATA']) await client.send(`${line}\n`)
    expect(await client.send('\r\nx\r\n.\r\n')).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(intake.taken).toHaveLength(1)
  })

  test.each([998, 999, 1000, 5000, 10_000_000])('a line of %i bytes is accepted unchanged', async (length) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    const line = 'x'.repeat(length)
    const packets = cutAt(
      Buffer.from(`\r\n${line}\r\n.\r\n`),
      [...Array(200).keys()].map((i) => i * 60_000),
    )
    expect(await client.send(...packets)).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(intake.taken[0]?.original.endsWith(`\r\n\r\n${line}\r\n`)).toBe(true)
    expect(intake.mostHeld).toBeLessThanOrEqual(5)
  })

  test.each(['Subject: a\0b\r\n\r\nx', '\r\na\0b'])('NUL in the content is refused: %j', async (content) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${content}\r\n.\r\n`)).toBe('554 5.6.0 Error: message contains NUL characters\r\n')
    expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
    expect(intake.taken).toEqual([])
  })

  test.each([
    ['200 kB in one field', `X: ${'y'.repeat(200_000)}\r\n`],
    ['200 kB in many fields', `X: ${'y'.repeat(93)}\r\n`.repeat(2000)],
  ])('a header of %s is taken, each field up to header_size_limit', async (_, header) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${header}\r\nx\r\n.\r\n`)).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(intake.taken[0]?.text.length).toBeGreaterThan(100_000)
    expect(intake.taken[0]?.text.endsWith('\r\n\r\nx\r\n')).toBe(true)
  })

  test('ten thousand small header fields are accepted', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${'X: y\r\n'.repeat(10_000)}\r\nx\r\n.\r\n`)).toMatch(/^250 /)
  })

  test.each([
    ['no header at all', 'hello there\r\n', '\r\nhello there\r\n'],
    ['a body without an empty line before it', 'X: y\r\nhello there\r\n', 'X: y\r\n\r\nhello there\r\n'],
    ['a first line that starts with a blank', ' X: y\r\n', '\r\n X: y\r\n'],
    ['a mailbox line', 'From ann Mon Jan  1\r\nX: y\r\n\r\nz\r\n', 'X-Mailbox-Line: From ann Mon Jan  1\r\nX: y\r\n\r\nz\r\n'],
    ['a blank before the colon', 'Bcc : eve\r\nX: y\r\n\r\nz\r\n', 'X: y\r\n\r\nz\r\n'],
    ['empty content', '', ''],
  ])('%s', async (_, sent, kept) => {
    const { connect, intake } = await openSmtpd({ relay_domains: ['far.example'] })
    const client = await connect(OUTSIDER)
    await client.upToData()
    await client.send(`${sent}.\r\n`)
    expect(intake.taken[0]?.original).toBe(kept)
  })

  test('a body without a header may exceed header_size_limit', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    expect(await client.send('no-header'.repeat(30_000), '\r\n.\r\n')).toMatch(/^250 /)
    expect(intake.taken[0]?.original).toMatch(/^Message-Id: [^\r]+\r\nDate: [^\r]+\r\nFrom: [^\r]+\r\n\r\nno-header/)
  })

  test.each(['end', 'resetAndDestroy'] as const)('a client that disconnects in the middle (%s) leaves nothing behind', async (leave) => {
    const dialogue = Buffer.from('EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\nDATA\r\nSubject: x\r\n\r\nhello\r\n.\r')
    const { connect, intake, of, wait } = await openSmtpd()
    for (let length = 0; length <= dialogue.length; length++) {
      const client = await connect()
      const lines = dialogue
        .subarray(0, length)
        .toString()
        .split(/(?<=\n)/)
      await client.send(...lines.filter((line) => line !== ''))
      client.socket[leave]()
      await wait(0)
    }
    expect(intake.taken).toEqual([])
    expect(of('connected')).toHaveLength(of('disconnected').length)
    expect(of('client-failure').every(({ failure }) => failure.what === 'lost-connection')).toBe(true)
    expect((await (await connect()).upToData()).startsWith('354')).toBe(true)
  })

  test('staged content of an interrupted message is removed', async () => {
    const { connect, intake, wait } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    await client.send(`\r\n${'x'.repeat(78)}\r\n`.repeat(10_000))
    expect(intake.staged.size).toBe(1)
    client.socket.resetAndDestroy()
    await wait(0)
    expect(intake.staged.size).toBe(0)
    expect(intake.taken).toEqual([])
  })
})

describe('commands and their order', () => {
  test('a client that sends before the greeting is disconnected, in one packet or in many', async () => {
    const { connect } = await openSmtpd()
    for (const eager of ['E', 'EHLO x\r\n', '\r\n', 'EHLO x\r\nMAIL FROM:<a@b.example>\r\n']) {
      const client = await connect('127.0.0.1', eager)
      expect(client.heard).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
    }
  })

  test('content in the same packet as DATA is a pipelining error', async () => {
    const { connect, intake, of } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')
    expect(await client.send('DATA\r\nSubject: x\r\n\r\nx\r\n.\r\n')).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
    expect(client.closed).toBe(true)
    expect(of('client-failure')).toMatchObject([{ failure: { what: 'pipelining', after: 'DATA' } }])
    expect(intake.taken).toEqual([])
  })

  test('content in a packet of its own before the 354 is one too', async () => {
    const { connect, intake, wait } = await openSmtpd({ smtpd_soft_error_limit: 1 })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'FOO')
    await wait(SECOND)
    await client.say('RCPT TO:<ann@far.example>')
    await wait(SECOND)
    // After an error, replies are delayed by a second.
    expect(await client.send('DATA\r\n')).toBe('')
    expect(await client.send('Subject: x\r\n\r\nx\r\n.\r\n')).toBe('')
    await wait(SECOND)
    expect(client.heard).toMatch(/250 2\.1\.5 Ok\r\n554 5\.5\.0 Error: SMTP protocol synchronization\r\n$/)
    expect(client.closed).toBe(true)
    expect(intake.taken).toEqual([])
  })

  test.each(['EHLO x', 'HELO x', 'NOOP', 'VRFY ann'])('%s must be the last command of a packet', async (command) => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send(`${command}\r\nRSET\r\n`)).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
  })

  test('a client that sent HELO may not pipeline', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.say('HELO x')
    expect(await client.send('MAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\n')).toMatch(/^554 5\.5\.0 /)
  })

  test('a client that sent EHLO may pipeline, and gets all replies', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x')
    const group = Buffer.from('RSET\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\nRCPT TO:<\r\nDATA\r\n')
    const answers = /^250 2\.0\.0 Ok\r\n250 2\.1\.0 Ok\r\n250 2\.1\.5 Ok\r\n501 5\.1\.3 [^\r]+\r\n354 [^\r]+\r\n$/
    for (const { packets } of segmentations(group)) {
      expect(await client.send(...packets)).toMatch(answers)
      await client.send('\r\nx\r\n.\r\n')
    }
  })

  test.each(['GET / HTTP/1.1', 'POST /x HTTP/1.1', 'CONNECT x:25 HTTP/1.1', 'Host: x', 'Subject: hi', '\x16\x03\x01\x02', '{"a":1}'])(
    '%j is a non-SMTP command',
    async (line) => {
      const { connect, intake } = await openSmtpd()
      const client = await connect()
      expect(await client.send(`${line}\r\nMAIL FROM:<a@b.example>\r\n`)).toMatch(/^(221 2\.7\.0|554 5\.5\.0) [^\r]*\r\n$/)
      expect(client.closed).toBe(true)
      expect(intake.taken).toEqual([])
      const patient = await connect()
      expect(await patient.say(line)).toBe('221 2.7.0 Error: this is a mail server, goodbye')
      expect(patient.closed).toBe(true)
    },
  )

  test('a refused message ends the transaction', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    await client.send('\r\n\0\r\n.\r\n')
    expect(await client.say('RCPT TO:<ann@far.example>')).toBe('503 5.5.1 Error: need MAIL command')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: need RCPT command')
  })

  test('commands out of sequence', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    expect(await client.say('RCPT TO:<ann@far.example>')).toBe('503 5.5.1 Error: need MAIL command')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: need RCPT command')
    expect(await client.say('MAIL FROM:<a@b.example>', 'MAIL FROM:<a@b.example>')).toBe('503 5.5.1 Error: nested MAIL command')
    expect(await client.say('DATA')).toBe('554 5.5.1 Error: no valid recipients')
    expect(await client.say('RCPT TO:<ann@far.example>', 'EHLO x', 'DATA')).toBe('503 5.5.1 Error: need RCPT command')
    expect(await client.say('MAIL FROM:<a@b.example>', 'RSET', 'RCPT TO:<ann@far.example>')).toMatch(/^503 /)
    expect(await client.say('RSET now')).toBe('501 5.5.4 Syntax: RSET')
    expect(await client.say('QUIT')).toBe('221 2.0.0 Bye')
    expect(client.closed).toBe(true)
  })

  test('commands after QUIT are not executed', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send('QUIT\r\nNOOP\r\n')).toBe('221 2.0.0 Bye\r\n')
  })

  test('junk commands are limited', async () => {
    const { connect, wait } = await openSmtpd()
    const client = await connect()
    for (let i = 0; i < 100; i++) expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
    for (let i = 0; i < 30 && !client.closed; i++) {
      await client.say('RSET')
      await wait(SECOND)
    }
    expect(client.heard).toMatch(/421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
  })

  test('a client that does not read replies is not read either', async () => {
    const { connect, wait } = await openSmtpd({ smtpd_recipient_limit: 1_000_000 })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    client.socket.pause()
    let sent = 0
    for (let i = 0; i < 200 && client.socket.writableLength < 500_000; i++) {
      const group = 'RCPT TO:<ann@far.example>\r\n'.repeat(1000)
      client.socket.write(group)
      sent += group.length
      await wait(0)
    }
    expect(client.socket.writableLength).toBeGreaterThan(400_000)
    expect(sent).toBeLessThan(2_000_000)
  })

  test('recipients beyond twice the limit count as errors', async () => {
    const { connect } = await openSmtpd({ smtpd_recipient_limit: 5, smtpd_recipient_overshoot_limit: 5, smtpd_soft_error_limit: 3 })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    for (let i = 0; i < 5; i++) expect(await client.say(`RCPT TO:<r${i}@far.example>`)).toMatch(/^250 /)
    for (let i = 0; i < 8; i++) expect(await client.say(`RCPT TO:<r${i}@far.example>`)).toMatch(/^452 4\.5\.3 /)
    expect(await client.say('RCPT TO:<r@far.example>')).toBe('')
  })

  test.each([2047, 2048, 2049, 5000, 16_000])('a command line of %i bytes', async (length) => {
    const { connect } = await openSmtpd()
    const client = await connect()
    const line = Buffer.from(`NOOP ${'x'.repeat(length - 6)}\r\n`)
    const answer = length <= 2048 ? '250 2.0.0 Ok\r\n' : '500 5.5.2 Error: line too long\r\n'
    expect(await client.send(line)).toBe(answer)
    expect(await client.send(...cutAt(line, [1, 1024, 2046, 2047, 2048, 2049, length - 1]))).toBe(answer)
    expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
  })

  test('a line without an end closes the connection', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    for (let i = 0; i < 17; i++) await client.send('x'.repeat(1024))
    expect(client.heard).toMatch(/\r\n421 4\.7\.0 relay\.example Error: line too long\r\n$/)
    expect(client.closed).toBe(true)
  })

  test.each([
    ['VRFY root', '252 2.0.0 root'],
    ['VRFY', '501 5.5.4 Syntax: VRFY address [SMTPUTF8]'],
    ['EXPN root', '500 5.5.2 Error: command not recognized'],
    ['WIZ', '500 5.5.2 Error: command not recognized'],
    ['SHELL', '500 5.5.2 Error: command not recognized'],
    ['KILL', '500 5.5.2 Error: command not recognized'],
    ['HELP', '500 5.5.2 Error: command not recognized'],
    ['XCLIENT ADDR=127.0.0.1', '550 5.7.0 Error: insufficient authorization'],
    ['XFORWARD ADDR=127.0.0.1', '550 5.7.0 Error: insufficient authorization'],
    ['STARTTLS', '502 5.5.1 Error: command not implemented'],
    ['AUTH PLAIN AGEAYg==', '503 5.5.1 Error: authentication not enabled'],
    ['ETRN x', '459 <x>: service unavailable'],
    ['constructor', '500 5.5.2 Error: command not recognized'],
    ['', '500 5.5.2 Error: bad syntax'],
    ['EHLO', '501 Syntax: EHLO hostname'],
    ['HELO', '501 Syntax: HELO hostname'],
    ['MAIL', '501 5.5.4 Syntax: MAIL FROM:<address>'],
    ['MAIL TO:<a@b.example>', '501 5.5.4 Syntax: MAIL FROM:<address>'],
    ['mail from: <a@b.example>', '250 2.1.0 Ok'],
    ['NOOP whatever', '250 2.0.0 Ok'],
  ])('%s', async (command, answer) => {
    const { connect } = await openSmtpd()
    const client = await connect()
    expect(await client.say(command)).toBe(answer)
  })

  test('a line that is no UTF-8 is refused, and counts as an error only', async () => {
    const { connect, of } = await openSmtpd({ relay_domains: ['far.example'] })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example> SMTPUTF8')
    for (const octets of ['RCPT TO:<\u00e4@far.example>', 'NOOP \u00ff', '\u00e4']) {
      expect(await client.send(Buffer.from(`${octets}\r\n`, 'latin1'))).toBe('500 5.5.2 Error: bad UTF-8 syntax\r\n')
    }
    for (const text of ['NOOP \ufffd', 'RCPT TO:<\u00e4@far.example>'])
      expect(await client.send(Buffer.from(`${text}\r\n`))).toMatch(/^250 /)
    await client.say('QUIT')
    expect(of('disconnected')[0]?.commands).toEqual({ ehlo: [1, 1], mail: [1, 1], rcpt: [1, 1], noop: [1, 1], quit: [1, 1] })
  })

  test('refused recipients count as errors', async () => {
    const { connect, wait } = await openSmtpd()
    const client = await connect(OUTSIDER)
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    for (let i = 0; i < 40 && !client.closed; i++) {
      await client.say(`RCPT TO:<r${i}@far.example>`)
      await wait(SECOND)
    }
    expect(client.heard.match(/^454 /gm)).toHaveLength(20)
    expect(client.heard).toMatch(/421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
  })
})

describe('addresses', () => {
  test.each([
    ['extra text in the path', '<a@b.example\0>', '501 5.1.3 Bad recipient address syntax'],
    ['extra text in the path', '<b@y.test SIZE=1>', '501 5.1.3 Bad recipient address syntax'],
    ['a quoted local part', '<"xclow3n@gmail.com x"@internal.example>', '250 2.1.5 Ok'],
    ['a quoted local part', '<"a\\"b"@internal.example>', '250 2.1.5 Ok'],
    ['a quoted local part', '<"a"b@internal.example>', '501 5.1.3 Bad recipient address syntax'],
    ['postmaster', '<postmaster>', '250 2.1.5 Ok'],
    ['postmaster', '<POSTMASTER@us.example>', '250 2.1.5 Ok'],
    ['the null path', '<>', '501 5.1.3 Bad recipient address syntax'],
    ['percent or bang routing', '<user%evil.example@us.example>', '250 2.1.5 Ok'],
    ['percent or bang routing', '<evil.example!user@us.example>', '250 2.1.5 Ok'],
    ['shell characters', '<|/bin/sh@x.example>', '250 2.1.5 Ok'],
    ['shell characters', '<$(id)@x.example>', '501 5.1.3 Bad recipient address syntax'],
    ['shell characters', '<../../x@y.example>', '250 2.1.5 Ok'],
    ['shell characters', '<-oQ/tmp@x.example>', '501 5.1.3 Bad recipient address syntax'],
    ['length limits', `<${'l'.repeat(64)}@x.example>`, '250 2.1.5 Ok'],
    ['length limits', `<${'l'.repeat(65)}@x.example>`, '250 2.1.5 Ok'],
    ['length limits', `<reply+${'0123456789abcdef'.repeat(50)}@x.example>`, '250 2.1.5 Ok'],
    ['length limits', `<${'l'.repeat(900)}@x.example>`, '501 5.1.3 Bad recipient address syntax'],
    ['length limits', `<a@${'d'.repeat(63)}.example>`, '250 2.1.5 Ok'],
    ['length limits', `<a@${'d'.repeat(64)}.example>`, '501 5.1.3 Bad recipient address syntax'],
    ['length limits', `<a@${'d.'.repeat(124)}abcd>`, '250 2.1.5 Ok'],
    ['length limits', `<a@${'d.'.repeat(125)}abcd>`, '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@[127.0.0.1]>', '250 2.1.5 Ok'],
    ['the domain', '<a@[IPv6:::1]>', '250 2.1.5 Ok'],
    ['the domain', '<a@[IPv6:zz]>', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@[300.0.0.1]>', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@127.0.0.1>', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@b..example>', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@-b.example>', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<a@b_c.example>', '250 2.1.5 Ok'],
    ['the domain', 'ann@far.example', '250 2.1.5 Ok'],
    ['the domain', '<ann@far.example', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<ann@far.example>x', '501 5.1.3 Bad recipient address syntax'],
    ['the domain', '<john..doe.@docomo.example>', '250 2.1.5 Ok'],
  ])('%s: RCPT TO:%s', async (_, path, answer) => {
    const { connect } = await openSmtpd()
    const client = await connect()
    expect(await client.say('EHLO x', 'MAIL FROM:<>', `RCPT TO:${path}`)).toBe(answer)
  })

  test.each([
    ['<ü@x.example>', '250 2.1.5 Ok', 'ü@x.example'],
    ['<u\u0308@x.example>', '250 2.1.5 Ok', 'ü@x.example'],
    ['<a@Bücher.example>', '250 2.1.5 Ok', 'a@xn--bcher-kva.example'],
    ['<a@XN--bcher-kva.example>', '250 2.1.5 Ok', 'a@xn--bcher-kva.example'],
    ['<a\u200b@x.example>', '501 5.1.3 Bad recipient address syntax', undefined],
    ['<a\u202eb@x.example>', '501 5.1.3 Bad recipient address syntax', undefined],
    ['<a\u0085b@x.example>', '501 5.1.3 Bad recipient address syntax', undefined],
  ])('%s with SMTPUTF8', async (path, answer, address) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<> SMTPUTF8')
    expect(await client.send(Buffer.from(`RCPT TO:${path}\r\n`))).toBe(`${answer}\r\n`)
    await client.say('DATA', '', '.')
    expect(intake.taken[0]?.recipients[0]?.address).toBe(address)
  })

  test('without SMTPUTF8 an address is ASCII; invalid UTF-8 is a syntax error', async () => {
    const { connect } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send(Buffer.from('MAIL FROM:<ü@x.example>\r\n'))).toMatch(/^553 5\.6\.7 /)
    expect(await client.send('MAIL FROM:<\xfc@x.example> SMTPUTF8\r\n')).toBe('500 5.5.2 Error: bad UTF-8 syntax\r\n')
    await client.say('MAIL FROM:<a@x.example>')
    expect(await client.send(Buffer.from('RCPT TO:<ü@x.example>\r\n'))).toMatch(/^553 5\.6\.7 /)
  })

  test('a source route is removed', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<@a.example:b@c.example>', 'RCPT TO:<@us.example,@x.example:user@far.example>')
    await client.say('DATA', '', '.')
    expect(intake.taken[0]?.message.sender).toBe('b@c.example')
    expect(intake.taken[0]?.recipients).toEqual([{ address: 'user@far.example' }])
  })

  test('five thousand nested groups in To are accepted', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    const field = `To: ${'a:'.repeat(5000)}${';'.repeat(5000)}`
    expect(await client.send(`${field}\r\nSubject: x\r\n\r\nx\r\n.\r\n`)).toMatch(/^250 /)
    expect(intake.taken[0]?.original).toContain(`${field}\r\n`)
  })

  test('a repeated recipient counts once, in upper or lower case', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData(['bob@far.example', 'bob@FAR.example', 'Bob@far.example'])
    await client.say('', '.')
    expect(intake.taken[0]?.recipients.map(({ address }) => address)).toEqual(['bob@far.example'])
  })

  test('an address without a domain gets myorigin', async () => {
    const { connect, intake } = await openSmtpd({ myorigin: 'us.example' })
    const client = await connect()
    await client.say('HELO x', 'MAIL FROM:<root>', 'RCPT TO:<Postmaster>', 'DATA', '', '.')
    expect(intake.taken[0]?.message.sender).toBe('root@us.example')
    expect(intake.taken[0]?.recipients).toEqual([{ address: 'Postmaster@us.example' }])
  })
})

test('soft_bounce turns 5xx replies into 4xx', async () => {
  const { connect, of } = await openSmtpd({ soft_bounce: true, message_size_limit: 50 })
  const client = await connect()
  expect(await client.say('FOO')).toBe('400 4.5.2 Error: command not recognized')
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<a@>')).toBe('401 4.1.3 Bad recipient address syntax')
  expect(await client.say('DATA')).toBe('454 4.5.1 Error: no valid recipients')
  expect(await client.say('RSET', 'MAIL FROM:<a@b.example> SIZE=51')).toBe('452 4.3.4 Message size exceeds fixed limit')
  expect(of('refused')).toMatchObject([{ reply: { code: 452, status: '4.3.4' } }])
  expect(await client.say('QUIT')).toBe('221 2.0.0 Bye')
})

describe('time', () => {
  test('a silent client is disconnected after smtpd_timeout', async () => {
    const { connect, wait, of } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    await wait(5 * MINUTE - 1)
    expect(client.closed).toBe(false)
    await wait(1)
    expect(client.heard).toMatch(/\r\n421 4\.4\.2 relay\.example Error: timeout exceeded\r\n$/)
    expect(client.closed).toBe(true)
    expect(of('client-failure')).toMatchObject([{ failure: { what: 'timeout', after: 'MAIL' } }])
  })

  test.each(['a command', 'a content'])('sending %s byte by byte does not extend the timeout', async (what) => {
    const { connect, wait } = await openSmtpd()
    const client = await connect()
    if (what === 'a content') await client.upToData()
    let minutes = 0
    for (; minutes < 60 && !client.closed; minutes++) {
      await client.send('x')
      await wait(MINUTE)
    }
    expect(client.heard).toMatch(/421 4\.4\.2 /)
    expect(minutes).toBeLessThan(7)
  })

  test('a byte every 400 ms does not extend a timeout of a second', async () => {
    const { connect, wait, clock } = await openSmtpd({ smtpd_timeout: SECOND })
    const client = await connect()
    const began = clock.now()
    for (let n = 0; n < 100 && !client.closed; n++) {
      await client.send('x')
      await wait(400)
    }
    expect(client.heard).toMatch(/421 4\.4\.2 /)
    expect(clock.now() - began).toBeLessThanOrEqual(2 * SECOND)
  })

  test('a slow client above the minimum rate is not timed out', async () => {
    const { connect, wait } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    await client.send('\r\n')
    for (let i = 0; i < 30; i++) {
      await client.send(`${'x'.repeat(30_000)}\r\n`)
      await wait(MINUTE)
    }
    expect(await client.send('.\r\n')).toMatch(/^250 2\.0\.0 Ok: queued/)
  })
})

describe('local errors', () => {
  test('while the store cannot commit no mail is accepted, and nothing is stored in part', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    intake.unavailable = true
    expect(await client.send('\r\nx\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    await client.upToData()
    expect(await client.send(`\r\n${'x'.repeat(400_000)}\r\n`, 'y\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    intake.unavailable = false
    await client.upToData()
    expect(await client.send('\r\nx\r\n.\r\n')).toMatch(/^250 /)
    expect(intake.taken).toHaveLength(1)
    expect(intake.staged.size).toBe(0)
  })

  test('while it is unknown whether a message was committed its client gets no reply, and the connection is closed', async () => {
    const { connect, intake, of } = await openSmtpd()
    intake.take = () => Promise.reject(new OutcomeUnknown('the answer to a commit was lost'))
    const client = await connect()
    await client.upToData()
    expect(await client.send('\r\nx\r\n.\r\n')).toBe('')
    expect(client.closed).toBe(true)
    expect(of('client-failure')).toMatchObject([{ failure: { what: 'no-reply' } }])
  })

  test('an internal error is logged, and the client gets 451', async () => {
    const { connect, intake, of } = await openSmtpd()
    intake.take = () => Promise.reject(new TypeError('oops'))
    const client = await connect()
    await client.upToData()
    expect(await client.send('\r\nx\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    expect(of('note')).toMatchObject([{ level: 'error', text: expect.stringContaining('cannot take a message: oops') }])
  })

  test('a shutdown completes a message in transfer, and disconnects other clients with 421', async () => {
    const { connect, smtpd, intake, wait } = await openSmtpd()
    const [idle, busy, stuck] = [await connect(), await connect(), await connect()]
    await busy.upToData()
    await stuck.upToData()
    void smtpd.close(10 * SECOND)
    await wait(0)
    expect(idle.heard).toMatch(/\r\n421 4\.3\.2 relay\.example Service shutting down\r\n$/)
    expect(idle.closed).toBe(true)
    expect(await busy.send('\r\nx\r\n.\r\n')).toMatch(/^250 2\.0\.0 Ok: queued as \w+\r\n421 4\.3\.2 [^\r]+\r\n$/)
    expect(intake.taken).toHaveLength(1)
    await expect(connect()).rejects.toThrow('ECONNREFUSED')
    expect(stuck.closed).toBe(false)
  })

  test('a message that is incomplete at the shutdown limit is aborted', async () => {
    const { connect, smtpd, intake, wait } = await openSmtpd()
    const client = await connect()
    await client.upToData()
    let closed = false
    void smtpd.close(10 * SECOND).then(() => (closed = true))
    await wait(10 * SECOND - 1)
    expect([closed, client.closed]).toEqual([false, false])
    await wait(1)
    expect([closed, client.closed]).toEqual([true, true])
    expect(intake.taken).toEqual([])
  })
})

describe('many connections', () => {
  test('four thousand idle connections do not exceed the limit or lock out an active client', async () => {
    const { connect, intake, wait, of } = await openSmtpd()
    const open = () => of('connected').length - of('disconnected').length
    for (let i = 0; i < 4000; i++) {
      await connect(`203.0.${i % 100}.9`)
      expect(open()).toBeLessThanOrEqual(1000)
      if (i % 400 === 399) await wait(10 * SECOND)
    }
    await wait(SECOND)
    const client = await connect()
    await client.upToData()
    expect(await client.say('', 'x', '.')).toMatch(/^250 /)
    expect(intake.taken).toHaveLength(1)
  })

  test('at the limit the connection idle longest is closed; active ones and those idle for a moment stay', async () => {
    const { connect, wait, of } = await openSmtpd({ smtpd_process_limit: 3 })
    const [busy, idle, talking] = [await connect(), await connect(), await connect()]
    await busy.upToData()
    await wait(9 * SECOND)
    await talking.say('EHLO x')
    const tooEarly = await connect()
    expect(tooEarly.heard).toBe('421 4.7.0 relay.example Error: too many connections\r\n')
    expect(tooEarly.closed).toBe(true)
    await wait(2 * SECOND)
    expect((await connect()).heard).toMatch(/^220 /)
    expect(idle.heard).toMatch(/\r\n421 4\.4\.2 relay\.example Error: timeout exceeded\r\n$/)
    expect(idle.closed).toBe(true)
    expect((await connect()).heard).toMatch(/^421 4\.7\.0 /)
    expect(await talking.say('NOOP')).toBe('250 2.0.0 Ok')
    expect(await busy.say('', 'x', '.')).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(of('connected').length - of('disconnected').length).toBe(3)
  })

  test('connections per untrusted client are limited', async () => {
    const { connect } = await openSmtpd()
    let served = 0
    for (let i = 0; i < 200; i++) if ((await connect(OUTSIDER)).heard.startsWith('220')) served++
    expect(served).toBe(50)
  })
})
