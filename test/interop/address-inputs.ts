/** Paths with addresses in odd forms, and tables whose keys are the normal forms of some of them. */

const entries = (table: Readonly<Record<string, string>>): string =>
  `inline:{${Object.entries(table)
    .map(([key, value]) => `{${key} = ${value}}`)
    .join(' ')}}`

/** Local parts in the forms in which a client may write them. */
const LOCAL_PARTS: readonly string[] = [
  'boss',
  'Boss',
  '"boss"',
  '"Boss"',
  String.raw`"bo\ss"`,
  'boss+x',
  '"boss+x"',
  String.raw`"boss\+x"`,
  '"bo"ss',
  '"boss+x y"',
  '"boss',
  'plain',
  '"a b"',
  String.raw`"a\ b"`,
  'a b',
  '" "',
  '""',
  '"+x"',
  '+x',
  'a..b',
  '"a..b"',
  '"a.b"',
  '.a',
  '"a."',
  '"a@b"',
  String.raw`"a\@b"`,
  'a@b',
  'a%b.test',
  '"a%b.test"',
  'b.test!a',
  '"a,b"',
  '"a:b"',
  '"a(b"',
  String.raw`"a\"b"`,
  String.raw`"a\\b"`,
  '"a[b"',
  "a'b*c/d=e?f{g}|h~",
  '"é"',
  'é',
  '-f',
  '"-f"',
  '"-f x"',
]

/** Domains, and the text before an address. */
const FRAMES: readonly ((local: string) => string)[] = [
  (local) => `${local}@US.Test`,
  (local) => `${local}@us.test.`,
  (local) => `@relay.test,@other.test:${local}@us.test`,
  (local) => local,
  (local) => `${local}@us`,
  (local) => `${local}@[192.0.2.1]`,
]
const FRAMED: readonly string[] = ['boss', '"boss"', '"boss+x"', '"a b"']

/** Every local part at one domain, and some of them in the other frames. */
export const PATHS: readonly string[] = [
  ...LOCAL_PARTS.map((local) => `${local}@us.test`),
  ...FRAMES.flatMap((frame) => FRAMED.map(frame)),
  'a%b.test@[192.0.2.1]',
]

/** Paths that both accept. */
export const DELIVERED: readonly string[] = LOCAL_PARTS.filter((local) => !/^"bo"ss$|^"boss$|^a b$|^"?-/.test(local)).map(
  (local) => `${local}@hop.test`,
)

const BOTH = {
  'boss@us.test': 'REJECT no boss',
  'boss@origin.example': 'REJECT no own boss',
  '"a b"@us.test': 'REJECT quoted',
  'a@b@us.test': 'REJECT unquoted',
  'é@us.test': 'REJECT accent',
}

export const FOR_TABLES: Readonly<Record<string, string>> = {
  recipient_delimiter: '+',
  smtpd_sender_restrictions: `check_sender_access ${entries(BOTH)}`,
  smtpd_recipient_restrictions: `check_recipient_access ${entries(BOTH)}, permit_mynetworks, reject_unauth_destination`,
}

/** Owners of senders, and restrictions about complete addresses. */
export const FOR_LOGINS: Readonly<Record<string, string>> = {
  recipient_delimiter: '+',
  smtpd_sender_login_maps: entries({
    'boss@us.test': 'boss',
    '"a b"@us.test': 'boss',
    'a@b@us.test': 'boss',
    'boss@origin.example': 'boss',
  }),
  smtpd_sender_restrictions: 'reject_non_fqdn_sender, reject_unauthenticated_sender_login_mismatch',
  smtpd_recipient_restrictions: 'reject_non_fqdn_recipient',
}

/** A Dovecot authentication server with one mechanism, which Postfix needs for owners of senders. It is never used. */
export const DOVECOT = 'VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t00\nDONE\n'

/** Entries with next hops that do not listen; their ports show which one was found. */
export const TRANSPORTS: Readonly<Record<string, string>> = {
  'boss@us.test': 'smtp:[127.0.0.1]:1',
  'boss+y@us.test': 'smtp:[127.0.0.1]:2',
  'us.test': 'smtp:[127.0.0.1]:3',
  '.us.test': 'smtp:[127.0.0.1]:4',
  '"a b"@us.test': 'smtp:[127.0.0.1]:5',
}

export const ROUTES: readonly string[] = [
  'boss@us.test',
  '"boss"@us.test',
  'Boss+x@us.test',
  '"boss+x y"@us.test',
  'boss+y@us.test',
  'boss+y+z@us.test',
  '+boss@us.test',
  'plain+x@us.test',
  String.raw`"a\ b"@us.test`,
  '"a b+x"@us.test',
  'boss+x@sub.us.test',
]
