import { describe, expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { openSmtpd, OUTSIDER, type RawClient } from '../support/smtpd-harness.ts'

const RECIPIENT = 'RCPT TO:<ann@far.example>'

async function inTransaction(client: RawClient, recipients: readonly string[] = [RECIPIENT]): Promise<RawClient> {
  await client.say('EHLO x', 'MAIL FROM:<app@us.example>', ...recipients)
  return client
}

const bdat = (content: string, last = ''): string => `BDAT ${content.length}${last}\r\n${content}`

describe('BDAT', () => {
  test('takes a content in chunks, at any segmentation', async () => {
    const { connect, intake } = await openSmtpd()
    const content = 'Subject: x\r\n\r\n.a\r\n..b\r\n.\r\nend\r\n'
    for (const cut of [1, 10, 15, content.length - 1]) {
      for (const size of [1, 3, 1000]) {
        const client = await inTransaction(await connect())
        const bytes = bdat(content.slice(0, cut)) + bdat(content.slice(cut), ' LAST')
        const before = client.heard.length
        for (let from = 0; from < bytes.length; from += size) await client.send(bytes.slice(from, from + size))
        expect(client.heard.slice(before)).toMatch(
          new RegExp(`^250 2\\.0\\.0 Ok: ${cut} bytes\\r\\n250 2\\.0\\.0 Ok: \\d+ bytes queued as \\w+\\r\\n$`),
        )
        expect(intake.taken.at(-1)?.original).toMatch(/\r\n\r\n\.a\r\n\.\.b\r\n\.\r\nend\r\n$/)
      }
    }
  })

  test('may be pipelined with the whole transaction, twice', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x')
    const one = `MAIL FROM:<>\r\n${RECIPIENT}\r\n${bdat('a: b\r\n\r\nbody\r\n', ' LAST')}`
    const answers = await client.send(`${one}${one}QUIT\r\n`)
    expect(answers.replaceAll(/queued as \w+/g, 'queued')).toBe(
      '250 2.1.0 Ok\r\n250 2.1.5 Ok\r\n250 2.0.0 Ok: 14 bytes queued\r\n'.repeat(2) + '221 2.0.0 Bye\r\n',
    )
    expect(intake.taken).toHaveLength(2)
  })

  test.each([
    ['abc', 'abc\r\n'],
    ['abc\n', 'abc\r\n'],
    ['abc\r', 'abc \r\n'],
    ['\r', ' \r\n'],
    ['', ''],
    ['a\rb\nc\r\n', 'a b\r\nc\r\n'],
  ])('ends the lines of %j with CRLF', async (text, stored) => {
    const { connect, intake } = await openSmtpd()
    const client = await inTransaction(await connect())
    expect(await client.send(bdat('x: y\r\n\r\n'))).toBe('250 2.0.0 Ok: 8 bytes\r\n')
    expect(await client.send(bdat(text, ' LAST'))).toMatch(/^250 2\.0\.0 Ok: \d+ bytes queued/)
    expect(intake.taken[0]?.original.split('\r\n\r\n').slice(1).join('\r\n\r\n')).toBe(stored)
  })

  test('stages a long content, one chunk after another', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await inTransaction(await connect())
    const line = `${'x'.repeat(998)}\r\n`
    for (let i = 0; i < 10; i++) expect(await client.send(bdat(line.repeat(100)))).toBe('250 2.0.0 Ok: 100000 bytes\r\n')
    expect(await client.send('BDAT 0 LAST\r\n')).toMatch(/^250 2\.0\.0 Ok: \d+ bytes queued/)
    expect(intake.taken[0]?.text).toHaveLength(intake.taken[0]?.message.size ?? 0)
    expect(intake.taken[0]?.text.endsWith(line.repeat(1000))).toBe(true)
  })

  test('may have an empty chunk only', async () => {
    const { connect } = await openSmtpd()
    const client = await inTransaction(await connect())
    expect(await client.send('BDAT 0 LAST\r\n')).toMatch(/^250 2\.0\.0 Ok: 0 bytes queued/)
    expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
  })

  test('skips a refused chunk and all that follow it', async () => {
    const { connect, intake } = await openSmtpd({ message_size_limit: 100 })
    const client = await inTransaction(await connect())
    const text = 'QUIT\r\n'.repeat(20)
    expect(await client.send(bdat('a: b\r\n'))).toBe('250 2.0.0 Ok: 6 bytes\r\n')
    expect(await client.send(bdat(text))).toBe('552 5.3.4 Chunk exceeds message size limit\r\n')
    expect(await client.send(bdat(text))).toBe('551 5.0.0 Discarded 120 bytes after earlier error\r\n')
    expect(await client.send(bdat(text, ' LAST'))).toBe('551 5.0.0 Discarded 120 bytes after earlier error\r\n')
    expect(await client.say('MAIL FROM:<>', RECIPIENT)).toBe('250 2.1.5 Ok')
    expect(await client.send(bdat('a: b\r\n', ' LAST'))).toMatch(/^250 2\.0\.0 Ok: \d+ bytes queued/)
    expect(intake.taken).toHaveLength(1)
  })

  test('reports a failure of the store at the chunk, and unstages the content at RSET and on disconnection', async () => {
    const { connect, intake } = await openSmtpd()
    const client = await inTransaction(await connect())
    const long = 'x'.repeat(500_000)
    expect(await client.send(bdat(long))).toBe('250 2.0.0 Ok: 500000 bytes\r\n')
    expect(intake.staged.size).toBe(1)
    expect(await client.say('RSET')).toBe('250 2.0.0 Ok')
    expect(intake.staged.size).toBe(0)
    await inTransaction(client)
    await client.send(bdat(long))
    intake.unavailable = true
    expect(await client.send(bdat(long))).toBe('451 4.3.0 Error: queue file write error\r\n')
    expect(await client.send(bdat('x', ' LAST'))).toBe('551 5.0.0 Discarded 1 bytes after earlier error\r\n')
    intake.unavailable = false
    await inTransaction(client)
    await client.send(bdat(long))
    expect(intake.staged.size).toBe(1)
    client.socket.destroy()
    await (await connect()).say('NOOP')
    expect(intake.staged.size).toBe(0)
  })

  test.each([
    [[], 'BDAT 3 LAST\r\nabc', '503 5.5.1 Error: need RCPT command'],
    [['MAIL FROM:<>'], 'BDAT 3 LAST\r\nabc', '554 5.5.1 Error: no valid recipients'],
    [['MAIL FROM:<>', RECIPIENT], 'BDAT 0\r\n', '551 5.7.1 Null BDAT request'],
    [['MAIL FROM:<>', RECIPIENT], 'BDAT\r\n', '521 5.5.4 Syntax: BDAT count [LAST]'],
    [['MAIL FROM:<>', RECIPIENT], 'BDAT -1\r\n', '521 5.5.4 Syntax: BDAT count [LAST]'],
    [['MAIL FROM:<>', RECIPIENT], 'BDAT 3 FIRST\r\nabc', '521 5.5.4 Syntax: BDAT count [LAST]'],
    [['MAIL FROM:<>', RECIPIENT], 'BDAT 99999999999999999999\r\n', '521 5.5.4 Syntax: BDAT count [LAST]'],
  ])('after %j, %j is refused', async (lines, bytes, answer) => {
    const { connect, intake } = await openSmtpd()
    const client = await connect()
    await client.say('EHLO x', ...lines)
    expect(await client.send(bytes)).toBe(`${answer}\r\n`)
    expect(client.closed).toBe(answer.startsWith('521'))
    if (!client.closed) expect(await client.say('NOOP')).toBe('250 2.0.0 Ok')
    expect(intake.taken).toEqual([])
  })

  test('MAIL, RCPT and DATA are out of sequence until LAST or RSET', async () => {
    const { connect } = await openSmtpd()
    const client = await inTransaction(await connect())
    await client.send(bdat('a: b\r\n'))
    expect(await client.say('MAIL FROM:<>')).toBe('503 5.5.1 Error: nested MAIL command')
    expect(await client.say(RECIPIENT)).toBe('503 5.5.1 Error: RCPT after BDAT')
    expect(await client.say('DATA')).toBe('503 5.5.1 Error: DATA after BDAT')
    expect(await client.say('RSET', 'MAIL FROM:<>', RECIPIENT, 'DATA')).toMatch(/^354 /)
  })

  test('content with a NUL, or with a bare LF where that is refused, is refused', async () => {
    const { connect } = await openSmtpd({ smtpd_forbid_bare_newline: 'reject' })
    const client = await inTransaction(await connect())
    expect(await client.send(bdat('a: b\r\n\r\n\0\r\n', ' LAST'))).toBe('554 5.6.0 Error: message contains NUL characters\r\n')
    await inTransaction(client)
    expect(await client.send(bdat('a: b\n'))).toMatch(/^550 5\.5\.2 /)
  })

  test('is counted in the log of the disconnection', async () => {
    const { connect, of } = await openSmtpd()
    const client = await inTransaction(await connect())
    await client.send(`${bdat('a: b\r\n')}BDAT 0 LAST\r\nQUIT\r\n`)
    expect(of('disconnected')[0]?.commands['bdat']).toEqual([2, 2])
  })
})

describe('ETRN', () => {
  test('flushes a domain in fast_flush_domains, and its subdomains', async () => {
    const { connect, flushed } = await openSmtpd({ fast_flush_domains: ['far.example'] })
    const client = await connect(OUTSIDER)
    for (const name of ['far.example', '@far.example', '#Mail.FAR.example'])
      expect(await client.say(`ETRN ${name}`)).toBe('250 Queuing started')
    expect(flushed).toEqual(['far.example', 'far.example', 'mail.far.example'])
    expect(await client.say('ETRN else.example')).toBe('459 <else.example>: service unavailable')
    expect(flushed).toHaveLength(3)
  })

  test.each([
    ['ETRN', '500 Syntax: ETRN domain'],
    ['ETRN a b', '500 Syntax: ETRN domain'],
    ['ETRN -', '501 Error: invalid parameter syntax'],
    ['ETRN 1.2.3.4', '501 Error: invalid parameter syntax'],
    ['ETRN [1.2.3.4]', '459 <[1.2.3.4]>: service unavailable'],
  ])('%s', async (command, answer) => {
    const { connect } = await openSmtpd()
    expect(await (await connect()).say(command)).toBe(answer)
  })

  test('is out of sequence in a transaction, and obeys smtpd_etrn_restrictions', async () => {
    const { connect, flushed } = await openSmtpd({
      fast_flush_domains: ['far.example'],
      smtpd_etrn_restrictions: ['permit_mynetworks', 'reject'],
    })
    const client = await connect()
    expect(await client.say('MAIL FROM:<>', 'ETRN far.example')).toBe('503 Error: MAIL transaction in progress')
    expect(await client.say('RSET', 'ETRN far.example')).toBe('250 Queuing started')
    expect(await (await connect(OUTSIDER)).say('ETRN far.example')).toMatch(/^459 /)
    expect(flushed).toHaveLength(1)
  })
})

describe('VRFY', () => {
  test('is answered for recipients that the client may send to', async () => {
    const { connect } = await openSmtpd({ relay_domains: ['far.example'] })
    const client = await connect(OUTSIDER)
    expect(await client.say('VRFY <ann@far.example>')).toBe('252 2.0.0 <ann@far.example>')
    expect(await client.say('VRFY ann@else.example')).toMatch(/^454 4\.7\.1 <ann@else\.example>: Relay access denied$/)
    expect(await client.say('VRFY ann@')).toBe('501 5.1.3 Bad recipient address syntax')
  })

  test('is refused and not announced with disable_vrfy_command', async () => {
    const { connect } = await openSmtpd({ disable_vrfy_command: true })
    const client = await connect()
    expect(await client.say('EHLO x')).not.toContain('VRFY')
    expect(await client.say('VRFY root')).toBe('502 5.5.1 VRFY command is disabled')
  })
})

test('extensions in smtpd_discard_ehlo_keywords are neither announced nor accepted', async () => {
  const { connect } = await openSmtpd({ smtpd_discard_ehlo_keywords: ['chunking', 'dsn', 'smtputf8', 'etrn', 'silent-discard'] })
  const client = await connect()
  expect(await client.say('EHLO x')).toBe(
    ['250-relay.example', '250-PIPELINING', '250-SIZE 10240000', '250-VRFY', '250-ENHANCEDSTATUSCODES', '250 8BITMIME'].join('\r\n'),
  )
  expect(await client.say('MAIL FROM:<> RET=HDRS')).toBe('501 5.7.1 DSN support is disabled')
  expect(await client.say('MAIL FROM:<> SMTPUTF8')).toBe('555 5.5.4 Unsupported option: SMTPUTF8')
  expect(await client.say('MAIL FROM:<>', `${RECIPIENT} NOTIFY=NEVER`)).toBe('501 5.7.1 DSN support is disabled')
  expect(await client.say('BDAT 3 LAST')).toBe('521 5.5.1 Error: command not implemented')
  expect(client.closed).toBe(true)
})

test('a client that sends only NOOP is disconnected after 121 commands, as by Postfix', async () => {
  const { connect, wait } = await openSmtpd()
  const client = await connect()
  for (let i = 1; i <= 120; i++) {
    await client.say('NOOP')
    await wait(SECOND)
  }
  expect([client.heard.match(/^250 2\.0\.0 Ok\r$/gm)?.length, client.closed]).toEqual([120, false])
  await client.say('NOOP')
  await wait(SECOND)
  expect(client.heard).toMatch(/421 4\.7\.0 relay\.example Error: too many errors\r\n$/)
})

test('the reply to the tenth error is sent at once, and that to the eleventh after a second', async () => {
  const { connect, wait } = await openSmtpd()
  const client = await connect()
  for (let i = 1; i <= 10; i++) expect(await client.say('WIZ')).toMatch(/^500 /)
  expect(await client.say('WIZ')).toBe('')
  await wait(SECOND)
  expect(client.heard.match(/^500 /gm)).toHaveLength(11)
})
