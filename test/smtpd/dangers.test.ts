/** What hostile and broken clients send, and what they get; the numbers are those of the catalogue of dangers. */
import { describe, expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/mail/clock.ts'
import { openReception, OUTSIDER } from '../support/reception.ts'
import { cutAt, segmentations } from '../support/segments.ts'

describe('lines and framing', () => {
  test('S11: commands that end in a bare LF are served', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>', 'DATA']) await client.send(`${line}\n`)
    expect(await client.send('\r\nx\r\n.\r\n')).toMatch(/^250 2\.0\.0 Ok: queued/)
    expect(intake.taken).toHaveLength(1)
  })

  test.each([998, 999, 1000, 5000, 10_000_000])('S14: a line of %i bytes is taken as it is', async (length) => {
    const { connect, intake } = await openReception()
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

  test.each(['Subject: a\0b\r\n\r\nx', '\r\na\0b'])('S15: NUL is no mail: %j', async (content) => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${content}\r\n.\r\n`)).toBe('554 5.6.0 Error: message contains NUL characters\r\n')
    expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
    expect(intake.taken).toEqual([])
  })

  test.each([
    ['200 kB in one field', `X: ${'y'.repeat(200_000)}\r\n`],
    ['200 kB in many fields', `X: ${'y'.repeat(93)}\r\n`.repeat(2000)],
  ])('S16: a header of %s is too much', async (_, header) => {
    const { connect } = await openReception()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${header}\r\nx\r\n.\r\n`)).toBe('552 5.3.4 Error: message header too big\r\n')
  })

  test('S16: ten thousand small fields are not', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.upToData()
    expect(await client.send(`${'X: y\r\n'.repeat(10_000)}\r\nx\r\n.\r\n`)).toMatch(/^250 /)
  })

  test.each([
    ['no header at all', 'hello there\r\n', '\r\nhello there\r\n'],
    ['a body that begins without an empty line', 'X: y\r\nhello there\r\n', 'X: y\r\n\r\nhello there\r\n'],
    ['a first line that begins with a blank', ' X: y\r\n', '\r\n X: y\r\n'],
    ['a mailbox line', 'From ann Mon Jan  1\r\nX: y\r\n\r\nz\r\n', 'X-Mailbox-Line: From ann Mon Jan  1\r\nX: y\r\n\r\nz\r\n'],
    ['a blank before the colon', 'Bcc : eve\r\nX: y\r\n\r\nz\r\n', 'X: y\r\n\r\nz\r\n'],
    ['nothing', '', ''],
  ])('S16: %s', async (_, sent, kept) => {
    const { connect, intake } = await openReception({ relay_domains: ['far.example'] })
    const client = await connect(OUTSIDER)
    await client.upToData()
    await client.send(`${sent}.\r\n`)
    expect(intake.taken[0]?.original).toBe(kept)
  })

  test('S16: a body without a header may be longer than a header may be', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.upToData()
    expect(await client.send('no-header'.repeat(30_000), '\r\n.\r\n')).toMatch(/^250 /)
    expect(intake.taken[0]?.original).toMatch(/^Message-Id: [^\r]+\r\nDate: [^\r]+\r\nFrom: [^\r]+\r\n\r\nno-header/)
  })

  test.each(['end', 'resetAndDestroy'] as const)('S17: a client that leaves in the middle (%s) leaves nothing', async (leave) => {
    const dialogue = Buffer.from('EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\nDATA\r\nSubject: x\r\n\r\nhello\r\n.\r')
    const { connect, intake, of, wait } = await openReception()
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
    expect(of('client-trouble').every(({ what }) => what.startsWith('lost connection after '))).toBe(true)
    expect((await (await connect()).upToData()).startsWith('354')).toBe(true)
  })

  test('S17: what was staged of a long message is forgotten with it', async () => {
    const { connect, intake, wait } = await openReception()
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
  test('S20: whoever talks before the greeting is shown out, in one packet or in many', async () => {
    const { connect } = await openReception()
    for (const eager of ['E', 'EHLO x\r\n', '\r\n', 'EHLO x\r\nMAIL FROM:<a@b.example>\r\n']) {
      const client = await connect('127.0.0.1', eager)
      expect(client.heard).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
    }
  })

  test('S21: a body sent along with DATA is not waited for', async () => {
    const { connect, intake, of } = await openReception()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<ann@far.example>')
    expect(await client.send('DATA\r\nSubject: x\r\n\r\nx\r\n.\r\n')).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
    expect(client.closed).toBe(true)
    expect(of('client-trouble')).toMatchObject([{ what: 'improper command pipelining after DATA' }])
    expect(intake.taken).toEqual([])
  })

  test('S21: nor one that comes in a packet of its own before the 354', async () => {
    const { connect, intake, wait } = await openReception({ smtpd_soft_error_limit: 1 })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'FOO')
    await wait(SECOND)
    await client.say('RCPT TO:<ann@far.example>')
    await wait(SECOND)
    // After an error replies come a second late.
    expect(await client.send('DATA\r\n')).toBe('')
    expect(await client.send('Subject: x\r\n\r\nx\r\n.\r\n')).toBe('')
    await wait(SECOND)
    expect(client.heard).toMatch(/250 2\.1\.5 Ok\r\n554 5\.5\.0 Error: SMTP protocol synchronization\r\n$/)
    expect(client.closed).toBe(true)
    expect(intake.taken).toEqual([])
  })

  test.each(['EHLO x', 'HELO x', 'NOOP', 'VRFY ann'])('S21: nothing may follow %s in the same packet', async (command) => {
    const { connect } = await openReception()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send(`${command}\r\nRSET\r\n`)).toBe('554 5.5.0 Error: SMTP protocol synchronization\r\n')
  })

  test('S21: a client that only said HELO may not send several commands at once', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.say('HELO x')
    expect(await client.send('MAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\n')).toMatch(/^554 5\.5\.0 /)
  })

  test('S21: one that said EHLO may, and gets all replies', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.say('EHLO x')
    const group = Buffer.from('RSET\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<ann@far.example>\r\nRCPT TO:<\r\nDATA\r\n')
    const answers = /^250 2\.0\.0 Ok\r\n250 2\.1\.0 Ok\r\n250 2\.1\.5 Ok\r\n501 5\.5\.4 [^\r]+\r\n354 [^\r]+\r\n$/
    for (const { packets } of segmentations(group)) {
      expect(await client.send(...packets)).toMatch(answers)
      await client.send('\r\nx\r\n.\r\n')
    }
  })

  test.each(['GET / HTTP/1.1', 'POST /x HTTP/1.1', 'CONNECT x:25 HTTP/1.1', 'Host: x', 'Subject: hi', '\x16\x03\x01\x02', '{"a":1}'])(
    'S22: %j is another protocol',
    async (line) => {
      const { connect, intake } = await openReception()
      const client = await connect()
      expect(await client.send(`${line}\r\nMAIL FROM:<a@b.example>\r\n`)).toMatch(/^(221 2\.7\.0|554 5\.5\.0) [^\r]*\r\n$/)
      expect(client.closed).toBe(true)
      expect(intake.taken).toEqual([])
      const patient = await connect()
      expect(await patient.say(line)).toBe('221 2.7.0 Error: this is a mail server, goodbye')
      expect(patient.closed).toBe(true)
    },
  )

  test('S23: a refused message leaves no transaction behind', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.upToData()
    await client.send('\r\n\0\r\n.\r\n')
    expect(await client.say('RCPT TO:<ann@far.example>')).toBe('503 5.5.1 Error: need MAIL command')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: need RCPT command')
  })

  test('S24: commands in the wrong order', async () => {
    const { connect } = await openReception()
    const client = await connect()
    expect(await client.say('RCPT TO:<ann@far.example>')).toBe('503 5.5.1 Error: need MAIL command')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: need RCPT command')
    expect(await client.say('MAIL FROM:<a@b.example>', 'MAIL FROM:<a@b.example>')).toBe('503 5.5.1 Error: nested MAIL command')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: need RCPT command')
    expect(await client.say('RCPT TO:<ann@far.example>', 'EHLO x', 'DATA')).toBe('503 5.5.1 Error: need RCPT command')
    expect(await client.say('MAIL FROM:<a@b.example>', 'RSET', 'RCPT TO:<ann@far.example>')).toMatch(/^503 /)
    expect(await client.say('RSET now')).toBe('501 5.5.4 Syntax: RSET')
    expect(await client.say('QUIT')).toBe('221 2.0.0 Bye')
    expect(client.closed).toBe(true)
  })

  test('S24: commands after QUIT are not run', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send('QUIT\r\nNOOP\r\n')).toBe('221 2.0.0 Bye\r\n')
  })

  test('S25: idle talk is not endless', async () => {
    const { connect, wait } = await openReception()
    const client = await connect()
    for (let i = 0; i < 100; i++) expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
    for (let i = 0; i < 30 && !client.closed; i++) {
      await client.say('RSET')
      await wait(SECOND)
    }
    expect(client.heard).toMatch(/421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
  })

  test('S25: a client that never reads replies is not read either', async () => {
    const { connect, wait } = await openReception({ smtpd_recipient_limit: 1_000_000 })
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

  test('S26: recipients beyond twice the limit are errors', async () => {
    const { connect } = await openReception({ smtpd_recipient_limit: 5, smtpd_recipient_overshoot_limit: 5, smtpd_soft_error_limit: 3 })
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    for (let i = 0; i < 5; i++) expect(await client.say(`RCPT TO:<r${i}@far.example>`)).toMatch(/^250 /)
    for (let i = 0; i < 7; i++) expect(await client.say(`RCPT TO:<r${i}@far.example>`)).toMatch(/^452 4\.5\.3 /)
    expect(await client.say('RCPT TO:<r@far.example>')).toBe('')
  })

  test.each([2047, 2048, 2049, 5000, 16_000])('S27: a command line of %i bytes', async (length) => {
    const { connect } = await openReception()
    const client = await connect()
    const line = Buffer.from(`NOOP ${'x'.repeat(length - 6)}\r\n`)
    const answer = length <= 2048 ? '250 2.0.0 Ok\r\n' : '500 5.5.2 Error: line too long\r\n'
    expect(await client.send(line)).toBe(answer)
    expect(await client.send(...cutAt(line, [1, 1024, 2046, 2047, 2048, 2049, length - 1]))).toBe(answer)
    expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
  })

  test('S27: a line that never ends ends the connection', async () => {
    const { connect } = await openReception()
    const client = await connect()
    for (let i = 0; i < 17; i++) await client.send('x'.repeat(1024))
    expect(client.heard).toMatch(/\r\n421 4\.7\.0 relay\.example Error: line too long\r\n$/)
    expect(client.closed).toBe(true)
  })

  test.each([
    ['VRFY root', '252 2.0.0 root'],
    ['VRFY', '501 5.5.4 Syntax: VRFY address'],
    ['EXPN root', '500 5.5.2 Error: command not recognized'],
    ['WIZ', '500 5.5.2 Error: command not recognized'],
    ['SHELL', '500 5.5.2 Error: command not recognized'],
    ['KILL', '500 5.5.2 Error: command not recognized'],
    ['HELP', '500 5.5.2 Error: command not recognized'],
    ['XCLIENT ADDR=127.0.0.1', '500 5.5.2 Error: command not recognized'],
    ['XFORWARD ADDR=127.0.0.1', '500 5.5.2 Error: command not recognized'],
    ['STARTTLS', '500 5.5.2 Error: command not recognized'],
    ['AUTH PLAIN AGEAYg==', '500 5.5.2 Error: command not recognized'],
    ['BDAT 3 LAST', '500 5.5.2 Error: command not recognized'],
    ['ETRN x', '500 5.5.2 Error: command not recognized'],
    ['constructor', '500 5.5.2 Error: command not recognized'],
    ['', '500 5.5.2 Error: bad syntax'],
    ['EHLO', '501 Syntax: EHLO hostname'],
    ['HELO', '501 Syntax: HELO hostname'],
    ['MAIL', '501 5.5.4 Syntax: MAIL FROM:<address>'],
    ['MAIL TO:<a@b.example>', '501 5.5.4 Syntax: MAIL FROM:<address>'],
    ['mail from: <a@b.example>', '250 2.1.0 Ok'],
    ['NOOP whatever', '250 2.0.0 Ok'],
  ])('S30: %s', async (command, answer) => {
    const { connect } = await openReception()
    const client = await connect()
    expect(await client.say(command)).toBe(answer)
  })

  test('S31: refused recipients are errors too', async () => {
    const { connect, wait } = await openReception()
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
    ['S40', '<a@b.example\0>', '501 5.1.3 Bad recipient address syntax'],
    ['S40', '<b@y.test SIZE=1>', '501 5.1.3 Bad recipient address syntax'],
    ['S41', '<"xclow3n@gmail.com x"@internal.example>', '250 2.1.5 Ok'],
    ['S41', '<"a\\"b"@internal.example>', '250 2.1.5 Ok'],
    ['S41', '<"a"b@internal.example>', '501 5.1.3 Bad recipient address syntax'],
    ['S43', '<postmaster>', '250 2.1.5 Ok'],
    ['S43', '<POSTMASTER@us.example>', '250 2.1.5 Ok'],
    ['S44', '<>', '501 5.1.3 Bad recipient address syntax'],
    ['S45', '<user%evil.example@us.example>', '250 2.1.5 Ok'],
    ['S45', '<evil.example!user@us.example>', '250 2.1.5 Ok'],
    ['S46', '<|/bin/sh@x.example>', '250 2.1.5 Ok'],
    ['S46', '<$(id)@x.example>', '501 5.1.3 Bad recipient address syntax'],
    ['S46', '<../../x@y.example>', '250 2.1.5 Ok'],
    ['S46', '<-oQ/tmp@x.example>', '250 2.1.5 Ok'],
    ['S47', `<${'l'.repeat(64)}@x.example>`, '250 2.1.5 Ok'],
    ['S47', `<${'l'.repeat(65)}@x.example>`, '501 5.1.3 Bad recipient address syntax'],
    ['S47', `<a@${'d'.repeat(63)}.example>`, '250 2.1.5 Ok'],
    ['S47', `<a@${'d'.repeat(64)}.example>`, '501 5.1.3 Bad recipient address syntax'],
    ['S47', `<a@${'d.'.repeat(124)}abcd>`, '250 2.1.5 Ok'],
    ['S47', `<a@${'d.'.repeat(125)}abcd>`, '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@[127.0.0.1]>', '250 2.1.5 Ok'],
    ['S48', '<a@[IPv6:::1]>', '250 2.1.5 Ok'],
    ['S48', '<a@[IPv6:zz]>', '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@[300.0.0.1]>', '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@127.0.0.1>', '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@b..example>', '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@-b.example>', '501 5.1.3 Bad recipient address syntax'],
    ['S48', '<a@b_c.example>', '250 2.1.5 Ok'],
    ['S48', 'ann@far.example', '250 2.1.5 Ok'],
    ['S48', '<ann@far.example', '501 5.5.4 Syntax: RCPT TO:<address>'],
    ['S48', '<ann@far.example>x', '501 5.5.4 Syntax: RCPT TO:<address>'],
    ['S48', '<john..doe.@docomo.example>', '250 2.1.5 Ok'],
  ])('%s: RCPT TO:%s', async (_, path, answer) => {
    const { connect } = await openReception()
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
  ])('S47: %s with SMTPUTF8', async (path, answer, address) => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<> SMTPUTF8')
    expect(await client.send(Buffer.from(`RCPT TO:${path}\r\n`))).toBe(`${answer}\r\n`)
    await client.say('DATA', '', '.')
    expect(intake.taken[0]?.recipients[0]?.address).toBe(address)
  })

  test('S47: without SMTPUTF8 an address is ASCII, and what is no UTF-8 is no address', async () => {
    const { connect } = await openReception()
    const client = await connect()
    await client.say('EHLO x')
    expect(await client.send(Buffer.from('MAIL FROM:<ü@x.example>\r\n'))).toMatch(/^553 5\.6\.7 /)
    expect(await client.send('MAIL FROM:<\xfc@x.example> SMTPUTF8\r\n')).toMatch(/^501 5\.1\.7 /)
    await client.say('MAIL FROM:<a@x.example>')
    expect(await client.send(Buffer.from('RCPT TO:<ü@x.example>\r\n'))).toMatch(/^553 5\.6\.7 /)
  })

  test('S45: a source route is taken off', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<@a.example:b@c.example>', 'RCPT TO:<@us.example,@x.example:user@far.example>')
    await client.say('DATA', '', '.')
    expect(intake.taken[0]?.message.sender).toBe('b@c.example')
    expect(intake.taken[0]?.recipients).toEqual([{ address: 'user@far.example' }])
  })

  test('S42: nobody reads To, so five thousand nested groups are a field like any other', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.upToData()
    const field = `To: ${'a:'.repeat(5000)}${';'.repeat(5000)}`
    expect(await client.send(`${field}\r\nSubject: x\r\n\r\nx\r\n.\r\n`)).toMatch(/^250 /)
    expect(intake.taken[0]?.original).toContain(`${field}\r\n`)
  })

  test('S47: a repeated recipient is one, but local parts may differ in case', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.upToData(['bob@far.example', 'bob@FAR.example', 'Bob@far.example'])
    await client.say('', '.')
    expect(intake.taken[0]?.recipients.map(({ address }) => address)).toEqual(['bob@far.example', 'Bob@far.example'])
  })

  test('names without a domain are ours', async () => {
    const { connect, intake } = await openReception({ myorigin: 'us.example' })
    const client = await connect()
    await client.say('HELO x', 'MAIL FROM:<root>', 'RCPT TO:<Postmaster>', 'DATA', '', '.')
    expect(intake.taken[0]?.message.sender).toBe('root@us.example')
    expect(intake.taken[0]?.recipients).toEqual([{ address: 'Postmaster@us.example' }])
  })
})

test('with soft_bounce nothing is refused for good', async () => {
  const { connect, of } = await openReception({ soft_bounce: true, message_size_limit: 50 })
  const client = await connect()
  expect(await client.say('FOO')).toBe('400 4.5.2 Error: command not recognized')
  expect(await client.say('EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<a@>')).toBe('401 4.1.3 Bad recipient address syntax')
  expect(await client.say('DATA')).toBe('454 4.5.1 Error: no valid recipients')
  expect(await client.say('RSET', 'MAIL FROM:<a@b.example> SIZE=51')).toBe('452 4.3.4 Message size exceeds fixed limit')
  expect(of('refused')).toMatchObject([{ reply: { code: 452, status: '4.3.4' } }])
  expect(await client.say('QUIT')).toBe('221 2.0.0 Bye')
})

describe('time', () => {
  test('a silent client is shown out after smtpd_timeout', async () => {
    const { connect, wait, of } = await openReception()
    const client = await connect()
    await client.say('EHLO x', 'MAIL FROM:<a@b.example>')
    await wait(5 * MINUTE - 1)
    expect(client.closed).toBe(false)
    await wait(1)
    expect(client.heard).toMatch(/\r\n421 4\.4\.2 relay\.example Error: timeout exceeded\r\n$/)
    expect(client.closed).toBe(true)
    expect(of('client-trouble')).toMatchObject([{ what: 'timeout after MAIL' }])
  })

  test.each(['a command', 'a content'])('S29, S70: dripping %s byte by byte buys no time', async (what) => {
    const { connect, wait } = await openReception()
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

  test('S70: a byte every 400 ms does not outlast a timeout of a second', async () => {
    const { connect, wait, clock } = await openReception({ smtpd_timeout: SECOND })
    const client = await connect()
    const began = clock.now()
    for (let n = 0; n < 100 && !client.closed; n++) {
      await client.send('x')
      await wait(400)
    }
    expect(client.heard).toMatch(/421 4\.4\.2 /)
    expect(clock.now() - began).toBeLessThanOrEqual(2 * SECOND)
  })

  test('S29: a slow client with a decent rate may take as long as it needs', async () => {
    const { connect, wait } = await openReception()
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

describe('our own trouble', () => {
  test('while the store cannot commit nothing is accepted and nothing half-kept', async () => {
    const { connect, intake } = await openReception()
    const client = await connect()
    await client.upToData()
    intake.ill = true
    expect(await client.send('\r\nx\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    await client.upToData()
    expect(await client.send(`\r\n${'x'.repeat(400_000)}\r\n`, 'y\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    intake.ill = false
    await client.upToData()
    expect(await client.send('\r\nx\r\n.\r\n')).toMatch(/^250 /)
    expect(intake.taken).toHaveLength(1)
    expect(intake.staged.size).toBe(0)
  })

  test('a bug is told to the operator and costs the client no mail', async () => {
    const { connect, intake, of } = await openReception()
    intake.take = () => Promise.reject(new TypeError('oops'))
    const client = await connect()
    await client.upToData()
    expect(await client.send('\r\nx\r\n.\r\n')).toBe('451 4.3.0 Error: queue file write error\r\n')
    expect(of('note')).toMatchObject([{ level: 'error', text: expect.stringContaining('cannot take a message: oops') }])
  })

  test('at the end a message on its way in is still answered, and everybody else is shown out', async () => {
    const { connect, smtpd, intake, wait } = await openReception()
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

  test('a message that does not come to its end in time is cut off', async () => {
    const { connect, smtpd, intake, wait } = await openReception()
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

describe('crowds', () => {
  test('S71: four thousand idle connections keep nobody from being served, and never are there more than the limit', async () => {
    const { connect, intake, wait, of } = await openReception()
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

  test('S71: who was silent longest makes room; who is heard, or was silent for a moment only, stays', async () => {
    const { connect, wait, of } = await openReception({ smtpd_process_limit: 3 })
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

  test('S71: those of one outsider are few', async () => {
    const { connect } = await openReception()
    let served = 0
    for (let i = 0; i < 200; i++) if ((await connect(OUTSIDER)).heard.startsWith('220')) served++
    expect(served).toBe(50)
  })
})
