/** The situations in which deferd and Postfix are compared. */

/** Command lines after some lines that bring the session to a state. */
export interface DialogueSituation {
  readonly id: string
  readonly lines: readonly string[]
  /** Number of replies, the greeting included, that belong to the state and are not compared. */
  readonly quiet: number
  readonly from: string
}

/** Bytes that are sent without waiting for replies. */
export interface BurstSituation {
  readonly id: string
  readonly bytes: string
}

/** A message by SMTP. Recipients without a domain get one of the situation, by which its log lines and deliveries are found. */
export interface MailSituation {
  readonly id: string
  readonly sender?: string
  /** Parameters of MAIL. */
  readonly parameters?: string
  /** Paths and parameters of RCPT; `@` at the end of a local part is completed with the domain of the situation. */
  readonly rcpt?: readonly string[]
  readonly content: string
  /** Sends the content with BDAT, in chunks of so many octets. */
  readonly chunk?: number
  readonly from?: string
}

export interface SendmailSituation {
  readonly id: string
  readonly args: readonly string[]
  readonly input: string
}

const TRUSTED = '127.0.0.1'
const OUTSIDER = '127.0.0.9'

const MAIL = 'MAIL FROM:<a@b.test>'
const RCPT = 'RCPT TO:<c@open.test>'

const STATES: Readonly<Record<string, readonly string[]>> = {
  'before EHLO': [],
  'after EHLO': ['EHLO client.example'],
  'after MAIL': ['EHLO client.example', MAIL],
  'after RCPT': ['EHLO client.example', MAIL, RCPT],
}

const COMMANDS = [
  'HELO',
  'HELO x',
  'HELO x y',
  'EHLO',
  'EHLO x y',
  'ehlo [127.0.0.1]',
  'EHLO a<b>c',
  'NOOP',
  'NOOP x',
  'RSET',
  'RSET x',
  'QUIT x',
  'DATA',
  'DATA x',
  'HELP',
  'EXPN root',
  'WIZ',
  'SEND FROM:<a@b.test>',
  '',
  'VRFY',
  'VRFY root',
  'VRFY <a@b.test>',
  'VRFY a@b.test SMTPUTF8',
  'VRFY a@',
  'ETRN',
  'ETRN b.test',
  'ETRN open.test',
  'ETRN sub.open.test',
  'ETRN @open.test',
  'ETRN #open.test',
  'ETRN a b',
  'ETRN [1.2.3.4]',
  'ETRN -',
  'STARTTLS',
  'STARTTLS x',
  'AUTH',
  'AUTH PLAIN',
  'AUTH PLAIN AGEAYg==',
  'XCLIENT ADDR=1.2.3.4',
  'XFORWARD ADDR=1.2.3.4',
  'BDAT 0',
  'BDAT 0 LAST',
  'BDAT',
  'BDAT x',
  'BDAT -1',
  'BDAT 1 x',
  'BDAT 0 LAST x',
  'NOOP \u00e4',
  '\u00e4',
  'VRFY \u00e4@b.test SMTPUTF8',
]

const MAIL_ARGUMENTS = [
  '',
  'FROM',
  'FROM:',
  'FROM:a@b.test',
  'FROM: <a@b.test>',
  'from:<a@b.test>',
  'FROM:<>',
  'FROM:<a>',
  'FROM:<a@>',
  'FROM:<@b.test>',
  'TO:<a@b.test>',
  'FROM:<a@b.test',
  'FROM:a@b.test>',
  'FROM:<a b@c.test>',
  'FROM:<"a b"@c.test>',
  'FROM:<a@b.test> x',
  'FROM:<a@b..test>',
  'FROM:<@r.test:a@b.test>',
  'FROM:<a@[127.0.0.1]>',
  'FROM:<a@127.0.0.1>',
  'FROM:<a.@b.test>',
  'FROM:<a..b@c.test>',
  'FROM:<a@b.test.>',
  'FROM:<a@b.test> SIZE=10',
  'FROM:<a@b.test> SIZE=200001',
  'FROM:<a@b.test> SIZE=x',
  'FROM:<a@b.test> SIZE=',
  'FROM:<a@b.test> SIZE',
  'FROM:<a@b.test> BODY=8BITMIME',
  'FROM:<a@b.test> BODY=7BIT',
  'FROM:<a@b.test> BODY=BINARYMIME',
  'FROM:<a@b.test> BODY',
  'FROM:<a@b.test> RET=FULL',
  'FROM:<a@b.test> RET=HDRS',
  'FROM:<a@b.test> RET=x',
  'FROM:<a@b.test> RET=FULL RET=HDRS',
  'FROM:<a@b.test> ENVID=x',
  'FROM:<a@b.test> ENVID=+41',
  'FROM:<a@b.test> ENVID=+4',
  'FROM:<a@b.test> ENVID=x ENVID=y',
  'FROM:<a@b.test> ENVID=a=b',
  `FROM:<a@b.test> ENVID=${'x'.repeat(101)}`,
  'FROM:<a@b.test> SMTPUTF8',
  'FROM:<a@b.test> AUTH=<>',
  'FROM:<a@b.test> XVERP',
  'FROM:<a@b.test> REQUIRETLS',
  'FROM:<a@b.test> SIZE=1 SIZE=2',
  'FROM:<\u00c3\u00a4@b.test>',
  'FROM:<\u00e4@b.test> SMTPUTF8',
  'FROM:<\u00c3\u00a4@b.test> SMTPUTF8',
  'FROM:Ann <a@b.test>',
  'FROM:<a@b_c.test>',
  'FROM:<a@-b.test>',
]

const RCPT_ARGUMENTS = [
  '',
  'TO',
  'TO:',
  'TO:a@b.test',
  'TO: <a@b.test>',
  'to:<a@b.test>',
  'TO:<>',
  'TO:<"">',
  'TO:<""@b.test>',
  'TO:<a>',
  'TO:<postmaster>',
  'TO:<a@>',
  'TO:<@b.test>',
  'FROM:<a@b.test>',
  'TO:<a@b.test',
  'TO:<a b@c.test>',
  'TO:<"a b"@c.test>',
  'TO:<a@b.test> x',
  'TO:<@r.test:a@b.test>',
  'TO:<a@[127.0.0.1]>',
  'TO:<a@b.test> NOTIFY=NEVER',
  'TO:<a@b.test> NOTIFY=SUCCESS,FAILURE,DELAY',
  'TO:<a@b.test> NOTIFY=NEVER,DELAY',
  'TO:<a@b.test> NOTIFY=DELAY,DELAY',
  'TO:<a@b.test> NOTIFY=NEVER,NEVER',
  'TO:<a@b.test> NOTIFY=',
  'TO:<a@b.test> NOTIFY=x',
  'TO:<a@b.test> ORCPT=rfc822;x@y.test',
  'TO:<a@b.test> ORCPT=rfc822',
  'TO:<a@b.test> ORCPT=rfc822;prvs=1=a@b.test',
  `TO:<a@b.test> ORCPT=rfc822;${'x'.repeat(500)}`,
  'TO:<a@b.test> ORCPT=rfc822;+4',
  'TO:<a@b.test> ORCPT=rfc822;a ORCPT=rfc822;b',
  'TO:<a%b@c.test>',
  'TO:<a!b>',
  'TO:<a@b@c.test>',
  'TO:<|x@b.test>',
  'TO:<-x@b.test>',
  'TO:<a@b..test>',
  'TO:<a@b.test.>',
  'TO:<\u00c3\u00a4@b.test>',
  'TO:<\u00e4@b.test>',
  'TO:<a@127.0.0.1>',
]

const dialogue = (state: string, command: string, from = TRUSTED): DialogueSituation => {
  const before = STATES[state] ?? []
  return {
    id: `${state}: ${command === '' ? '(empty line)' : command}${from === TRUSTED ? '' : ' (outsider)'}`,
    lines: [...before, command],
    quiet: before.length + 1,
    from,
  }
}

export const DIALOGUES: readonly DialogueSituation[] = [
  ...Object.keys(STATES).flatMap((state) => COMMANDS.map((command) => dialogue(state, command))),
  ...MAIL_ARGUMENTS.map((argument) => dialogue('after EHLO', `MAIL ${argument}`)),
  ...RCPT_ARGUMENTS.map((argument) => dialogue('after MAIL', `RCPT ${argument}`)),
  ...[
    'RCPT TO:<a@b.test>',
    'RCPT TO:<a@open.test>',
    'RCPT TO:<a@sub.open.test>',
    'RCPT TO:<a%b.test@open.test>',
    'RCPT TO:<a@b.test@open.test>',
  ].map((command) => dialogue('after MAIL', command, OUTSIDER)),
  ...['VRFY a@b.test', 'VRFY <a@b.test>', 'VRFY a@open.test', 'ETRN open.test'].map((command) => dialogue('after EHLO', command, OUTSIDER)),
  { id: 'the greeting and the extensions', lines: ['EHLO x'], quiet: 0, from: TRUSTED },
  { id: 'MAIL after RCPT', lines: ['EHLO x', MAIL, RCPT, MAIL], quiet: 0, from: TRUSTED },
  { id: 'all recipients refused', lines: ['EHLO x', MAIL, 'RCPT TO:<>', 'DATA'], quiet: 0, from: TRUSTED },
  { id: '121 NOOP', lines: Array.from({ length: 125 }, () => 'NOOP'), quiet: 0, from: TRUSTED },
  { id: 'RSET does not end an idle session early', lines: Array.from({ length: 125 }, () => 'RSET'), quiet: 0, from: TRUSTED },
  { id: '20 errors', lines: Array.from({ length: 25 }, () => 'WIZ'), quiet: 0, from: TRUSTED },
  { id: 'a line of more than 2048 bytes', lines: ['EHLO x', `NOOP ${'x'.repeat(3000)}`], quiet: 0, from: TRUSTED },
  { id: 'a long line', lines: ['EHLO x', `NOOP ${'x'.repeat(2000)}`, `MAIL FROM:<${'x'.repeat(600)}@b.test>`], quiet: 0, from: TRUSTED },
]

/** Bytes of a client that then closes the connection, and its lines in the log. */
export const CUTS: readonly (readonly string[])[] = [
  [],
  ['\r\n'],
  ['EHLO x\r\n'],
  ['EHLO x\r\n', 'FROB\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, 'mail'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'DATA\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'DATA\r\n', 'Subject: x\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'DATA\r\n', 'Subject: x\r\n.\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT 9\r\n', 'x'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT 3\r\nx\r\n'],
  ['EHLO x\r\n', 'BDAT 9\r\n', 'x'],
  ['EHLO x\r\n', 'RSET\r\n', 'NOOP\r\n', 'VRFY a@open.test\r\n'],
  ['EHLO x\r\nNOOP\r\n'],
  ['HELO x\r\n', 'FOO\r\nBAR\r\n'],
  ['GET / HTTP/1.1\r\nHost: x\r\n'],
  ['HELO x\r\n', 'FOO\r\n'.repeat(20)],
  ...['', ' abc', ' -1', ' +1', ' 10 FOO', ' 1 LAST x', ' 9'.repeat(3), ` ${'9'.repeat(20)}`, ` \x01 ${'x'.repeat(200)}`].map(
    (argument) => ['EHLO x\r\n', `BDAT${argument}\r\n`],
  ),
  ['EHLO x\r\n', 'BDAT \u00e4\r\n'],
  ['bDaT   x \r\n'],
  ['EHLO x\r\n', 'BDAT 0\r\n', 'BDAT 0 LAST\r\n'],
  ['EHLO x\r\n', `BDAT 200002\r\n${'x'.repeat(200_000)}\r\n`],
  ['EHLO x\r\n', `${MAIL}\r\n`, 'BDAT 0\r\n', 'BDAT 3\r\nx\r\n', 'BDAT\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT abc\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT 0\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT 3\r\nx\r\n', 'BDAT 0\r\n', 'BDAT 3 FOO\r\n'],
  ['EHLO x\r\n', `${MAIL}\r\n`, `${RCPT}\r\n`, 'BDAT 3\r\nx\r\n', `BDAT 200002\r\n${'x'.repeat(200_000)}\r\n`, 'BDAT 3\r\nx\r\n'],
]

const bdat = (text: string, last = ''): string => `BDAT ${text.length}${last}\r\n${text}`
const OPENED = `EHLO x\r\n${MAIL}\r\n${RCPT}\r\n`

export const BURSTS: readonly BurstSituation[] = [
  { id: 'a pipelined transaction', bytes: `EHLO x\r\n` },
  { id: 'a chunk', bytes: bdat('Subject: x\r\n\r\nx\r\n', ' LAST') },
  { id: 'chunks', bytes: bdat('Subject: x\r\n') + bdat('\r\nx\r\n') + bdat('y', ' LAST') },
  { id: 'a chunk and an empty last one', bytes: `${bdat('Subject: x\r\n')}BDAT 0 LAST\r\n` },
  { id: 'an empty chunk', bytes: `${bdat('Subject: x\r\n')}BDAT 0\r\n${bdat('x', ' LAST')}` },
  { id: 'a chunk above the size limit', bytes: bdat('x'.repeat(200_001), ' LAST') },
  { id: 'a first chunk above the size limit', bytes: bdat('x'.repeat(200_001)) + bdat('x') + bdat('x', ' LAST') },
  {
    id: 'a second chunk above the size limit',
    bytes: bdat(`${'x'.repeat(998)}\r\n`.repeat(150)) + bdat('x'.repeat(100_000)) + bdat('x', ' LAST'),
  },
  { id: 'MAIL after BDAT', bytes: `${bdat('x')}${MAIL}\r\nRSET\r\n${MAIL}\r\n` },
  { id: 'RCPT after BDAT', bytes: `${bdat('x')}${RCPT}\r\n` },
  { id: 'DATA after BDAT', bytes: `${bdat('x')}NOOP x\r\n` },
  { id: 'RSET after BDAT', bytes: `${bdat('x')}RSET\r\n${MAIL}\r\n${RCPT}\r\n${bdat('a: b\r\n', ' LAST')}` },
  { id: 'BDAT with a bad count', bytes: 'BDAT 1x\r\nxx' },
  { id: 'BDAT that is too long a number', bytes: 'BDAT 99999999999999999999\r\n' },
  { id: 'two transactions', bytes: `${bdat('a: b\r\n', ' LAST')}${MAIL}\r\n${RCPT}\r\n${bdat('a: b\r\n', ' LAST')}` },
  { id: 'BDAT without recipients', bytes: `RSET\r\n${MAIL}\r\n${bdat('a: b\r\n', ' LAST')}NOOP\r\n` },
  { id: 'BDAT without a transaction', bytes: `RSET\r\n${bdat('a: b\r\n')}${bdat('a: b\r\n', ' LAST')}${MAIL}\r\n` },
  { id: 'BDAT without a transaction, then MAIL', bytes: `RSET\r\n${bdat('a: b\r\n')}${MAIL}\r\n${bdat('a: b\r\n', ' LAST')}` },
].map(({ id, bytes }) => ({ id, bytes: `${OPENED}${bytes}QUIT\r\n` }))

const DATE = 'Date: Fri, 20 Nov 2026 10:00:00 +0000\r\n'
const ID = 'Message-Id: <1@client.example>\r\n'
const FULL = `From: a@b.test\r\nTo: c@d.test\r\n${DATE}${ID}`

const header = (id: string, lines: string): MailSituation => ({ id: `header: ${id}`, content: `${lines}\r\nbody\r\n` })
const ADDRESS_FIELDS = ['From', 'To', 'Cc', 'Sender', 'Reply-To', 'Resent-To', 'Errors-To', 'Disposition-Notification-To']
const ADDRESSES: Readonly<Record<string, string>> = {
  'a bare name': 'ann',
  'a bare name in brackets': '<ann>',
  'a name and a bare address': 'Ann Example <ann>',
  'a quoted name': '"Example, Ann" <ann>',
  'two bare names': 'ann, bob',
  'two names without a comma': 'ann bob',
  'a complete and a bare address': 'ann@c.test, bob',
  'a host without a dot': 'ann@mail',
  'a group': 'friends: ann, bob@c.test;',
  'an empty group': 'undisclosed-recipients:;',
  'a comment': 'ann (Ann Example)',
  'a comment and a complete address': 'ann@c.test (Ann Example)',
  'a folded list': 'ann,\r\n bob@c.test,\r\n\tEve <eve>',
  'an empty value': '',
  'an address literal': 'ann@[127.0.0.1]',
  'a trailing dot': 'ann@c.test.',
  'a percent sign': 'ann%host',
  'a bang path': 'host!ann',
  'a quoted local part': '"ann b"',
  'encoded words': '=?utf-8?q?Ann?= <ann>',
  'raw UTF-8': '\u00c3\u0084nn <ann>',
}

const LONG = 'x'.repeat(900)

export const MAILS: readonly MailSituation[] = [
  ...Object.entries(ADDRESSES).map(([id, value]) => header(`To with ${id}`, `From: a@b.test\r\nTo: ${value}\r\n${DATE}${ID}`)),
  ...ADDRESS_FIELDS.map((name) => header(`${name} with a bare name`, `${DATE}${ID}${name}: ann\r\nSubject: x\r\n`)),
  ...['a bare name', 'a name and a bare address', 'a folded list', 'a host without a dot'].map((id) => ({
    ...header(`To with ${id}, from an outsider`, `${FULL}Cc: ${ADDRESSES[id]}\r\n`),
    rcpt: [`ann@open.test`],
    from: OUTSIDER,
  })),
  header('no From', `To: c@d.test\r\n${DATE}${ID}`),
  header('no Date', `From: a@b.test\r\nTo: c@d.test\r\n${ID}`),
  header('no Message-Id', `From: a@b.test\r\nTo: c@d.test\r\n${DATE}`),
  header('none of them', 'Subject: x\r\n'),
  header('no To', `From: a@b.test\r\n${DATE}${ID}`),
  header('Resent-To only', `${FULL}Resent-To: r@s.test\r\n`),
  header('Bcc', `${FULL}Bcc: secret@d.test\r\n`),
  header('Return-Path', `Return-Path: <x@y.test>\r\n${FULL}`),
  header('Content-Length', `${FULL}Content-Length: 12\r\n`),
  header('Subject with a blank before the colon', `${FULL}Subject : x\r\n`),
  header('Subject with a tab before the colon', `${FULL}Subject\t: x\r\n`),
  header('Subject without a blank after the colon', `${FULL}Subject:x\r\n`),
  header('To with a blank before the colon', `From: a@b.test\r\nTo : ann\r\n${DATE}${ID}`),
  header('an empty Subject', `${FULL}Subject:\r\n`),
  header('trailing blanks', `${FULL}Subject: x  \r\n`),
  header('a folded Subject', `${FULL}Subject: a\r\n b\r\n\tc\r\n`),
  header('a Subject that begins on its second line', `${FULL}Subject:\r\n a\r\n`),
  header('a continuation of blanks', `${FULL}Subject: a\r\n  \r\n b\r\n`),
  header('a mailbox line', `From a@b.test Fri Nov 20 10:00:00 2026\r\n${FULL}`),
  header('a mailbox line with >', `>From a@b.test Fri Nov 20 10:00:00 2026\r\n${FULL}`),
  header('a first line that is folded', ` folded\r\n${FULL}`),
  header('a line without a colon', `${FULL}no field\r\nSubject: x\r\n`),
  header('an unknown field', `${FULL}X-Anything: a, b <c>\r\n`),
  header('Received', `Received: from x by y; Fri, 20 Nov 2026 10:00:00 +0000\r\n${FULL}`),
  header('a long line', `${FULL}Subject: ${LONG}${LONG}\r\n`),
  header('a field of 120,000 bytes', `${FULL}X-Long: ${`${LONG}\r\n `.repeat(133)}end\r\nSubject: after\r\n`),
  header('150 fields of 900 bytes', `${FULL}${`X-Field: ${LONG}\r\n`.repeat(150)}`),
  header('MIME', `${FULL}MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n`),
  { id: 'an empty message', content: '' },
  { id: 'a body without a header', content: 'body\r\n' },
  { id: 'an empty line first', content: '\r\nbody\r\n' },
  { id: 'stuffed dots', content: `${FULL}\r\n..\r\n...x\r\n..y\r\n` },
  { id: 'a bare LF', content: `${FULL}\r\na\nb\r\n` },
  { id: 'a bare CR', content: `${FULL}\r\na\rb\r\n` },
  { id: '8-bit bytes', content: `${FULL}\r\n\u00e4\u00ff\r\n` },
  { id: 'a body line of 3000 bytes', content: `${FULL}\r\n${'x'.repeat(3000)}\r\n` },
  { id: 'a NUL', content: `${FULL}\r\na\0b\r\n` },
  { id: 'a message above the size limit', content: `${FULL}\r\n${`${'x'.repeat(998)}\r\n`.repeat(205)}` },
  { id: '49 hops', content: `${'Received: x\r\n'.repeat(49)}${FULL}\r\nx\r\n` },
  { id: '48 hops', content: `${'Received: x\r\n'.repeat(48)}${FULL}\r\nx\r\n` },
  { id: 'chunks', content: `${FULL}\r\n.\r\n..x\r\nend`, chunk: 7 },
  { id: 'one chunk', content: `${FULL}\r\nx\r\n`, chunk: 10_000 },
  { id: 'chunks with bare LF', content: `${FULL}\r\na\nb`, chunk: 3 },
  { id: 'the null sender', sender: '', content: `${FULL}\r\nx\r\n` },
  { id: 'the null sender without From', sender: '', content: 'Subject: x\r\n\r\nx\r\n' },
  { id: 'a sender without a domain', sender: 'app', content: 'Subject: x\r\n\r\nx\r\n' },
  { id: 'a sender with a host without a dot', sender: 'app@mail', content: 'Subject: x\r\n\r\nx\r\n' },
  { id: 'a quoted sender', sender: '"a b"@c.test', content: 'Subject: x\r\n\r\nx\r\n' },
  {
    id: 'DSN parameters',
    parameters: ' RET=HDRS ENVID=x+2By',
    rcpt: ['r@ NOTIFY=FAILURE,DELAY ORCPT=rfc822;o+40p.test'],
    content: `${FULL}\r\nx\r\n`,
  },
  { id: 'BODY=8BITMIME', parameters: ' BODY=8BITMIME', content: `${FULL}\r\n\u00e4\r\n` },
  { id: 'BODY=7BIT', parameters: ' BODY=7BIT', content: `${FULL}\r\nx\r\n` },
  { id: 'ORCPT of another address', rcpt: ['r@ ORCPT=rfc822;other@o.test'], content: `${FULL}\r\nx\r\n` },
  { id: 'a recipient twice', rcpt: ['r@', 'r@'], content: `${FULL}\r\nx\r\n` },
  { id: 'recipients that differ in case', rcpt: ['Bob@', 'bob@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a recipient in upper case', rcpt: ['BOB@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a quoted recipient', rcpt: ['"a b"@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a refused recipient', rcpt: ['550+5.1.1+unknown@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a refused recipient without a status', rcpt: ['550@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a deferred recipient', rcpt: ['450+4.2.1+busy@'], content: `${FULL}\r\nx\r\n` },
  { id: 'recipients of all kinds', rcpt: ['ok@', '550+5.1.1+unknown@', '451+4.7.1+later@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a message refused at DATA', rcpt: ['at-data+554+5.7.1+no@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a message refused at its end', rcpt: ['after-dot+554+5.7.1+spam@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a message deferred at its end', rcpt: ['after-dot+452+4.3.1+full@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a status of another class', rcpt: ['550+4.1.1+odd@'], content: `${FULL}\r\nx\r\n` },
  { id: 'a refused recipient without a notice', rcpt: ['550+5.1.1+unknown@ NOTIFY=NEVER'], content: `${FULL}\r\nx\r\n` },
  { id: 'a refused recipient of the null sender', sender: '', rcpt: ['550+5.1.1+unknown@'], content: `${FULL}\r\nx\r\n` },
]

const TEXT = 'Subject: x\n\nbody\n'
const sendmail = (id: string, args: readonly string[], input = TEXT): SendmailSituation => ({ id: `sendmail: ${id}`, args, input })

export const SENDMAILS: readonly SendmailSituation[] = [
  sendmail('-f', ['-f', 'app@b.test', 'r@']),
  sendmail('-f without a domain', ['-f', 'app', 'r@']),
  sendmail('-f with a name', ['-f', 'Full Name <app@b.test>', 'r@']),
  sendmail('-f with a comment', ['-f', 'app@b.test (Full Name)', 'r@']),
  sendmail('-f empty', ['-f', '', 'r@']),
  sendmail('-f <>', ['-f', '<>', 'r@']),
  sendmail('-F', ['-f', 'app@b.test', '-F', 'Full Name', 'r@']),
  sendmail('-F with specials', ['-f', 'app@b.test', '-F', 'Name, Full', 'r@']),
  sendmail('-F with quotes', ['-f', 'app@b.test', '-F', 'A "B" C', 'r@']),
  sendmail('-F and -f <>', ['-f', '', '-F', 'Full Name', 'r@']),
  sendmail('-F with non-ASCII', ['-f', 'app@b.test', '-F', 'J\u00fcrgen', 'r@']),
  sendmail('a From of the message', ['-f', 'app@b.test', '-F', 'Full Name', 'r@'], `From: me\n${TEXT}`),
  sendmail('-t', ['-t', '-f', 'app@b.test'], `To: r@, Ann <s@>\nCc: t@\nBcc: u@\n${TEXT}`),
  sendmail('-i', ['-i', '-f', 'app@b.test', 'r@'], `${TEXT}.\nafter\n`),
  sendmail('a dot', ['-f', 'app@b.test', 'r@'], `${TEXT}.\nafter\n`),
  sendmail('a mailbox line', ['-f', 'app@b.test', 'r@'], `From x Fri Nov 20 10:00:00 2026\n${TEXT}`),
  sendmail('CRLF', ['-f', 'app@b.test', 'r@'], TEXT.replaceAll('\n', '\r\n')),
  sendmail('-N, -R and -V', ['-f', 'app@b.test', '-N', 'failure,delay', '-R', 'hdrs', '-V', 'envelope1', 'r@']),
  sendmail('-N never', ['-f', 'app@b.test', '-N', 'never', 'r@']),
  sendmail('-B', ['-f', 'app@b.test', '-B', '8BITMIME', 'r@']),
  sendmail('-G', ['-G', '-f', 'app@b.test', 'r@'], `To: ann\n${TEXT}`),
  sendmail('a bare header address', ['-f', 'app@b.test', 'r@'], `To: ann\n${TEXT}`),
  sendmail('no recipients', ['-f', 'app@b.test']),
  sendmail('an unknown option', ['-n', 'r@']),
  sendmail('no final newline', ['-f', 'app@b.test', 'r@'], 'Subject: x\n\nbody'),
  sendmail('no header', ['-f', 'app@b.test', 'r@'], 'body\n'),
  sendmail('recipients that differ in case', ['-f', 'app@b.test', 'Bob@', 'bob@']),
]
