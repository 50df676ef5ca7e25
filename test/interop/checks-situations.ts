/** Tables of header_checks, body_checks and smtp_header_checks, by the name of the comparison. Both systems read the same files. */

export interface ChecksSituation {
  /** Lines of the table of each parameter. */
  readonly tables: Readonly<Record<string, readonly string[]>>
  readonly settings?: Readonly<Record<string, string>>
  /** True when deferd reads the tables as pcre:, and Postfix as regexp:. */
  readonly asPcre?: boolean
}

const ACTIONS = [
  '/^Subject: .*lottery/ REJECT we do not play',
  '/^Subject: .*viagra/ REJECT',
  '/^Subject: .*later/ REJECT 4.2.1 Come again',
  '/^Subject: .*casino (.*)/ REJECT 5.6.1 No $1, $$0',
  '/^Subject: .*discreet/ DISCARD as you like',
  '/^Subject: .*pending/ HOLD for inspection',
  '/^Subject: .*boss/ REDIRECT boss@redirect.test',
  '/^Subject: .*report/ WARN a report',
  '/^Subject: .*minutes/i INFO seen',
  '/^X-Mailer: (.*)/ REPLACE X-Was-Mailer: $1',
  '/^X-Remove/ IGNORE',
  '/^X-Strip/ STRIP gone',
  '/^X-Before/ PREPEND X-Inserted: by a rule',
  '/^To:/ PREPEND X-To-Follows: root',
  '/^X-Keep/ DUNNO',
  '/^X-Keep/ REJECT never',
  '/^Received:.*with (ESMTP|SMTP)/ PREPEND X-Protocol: $1',
  '/^Message-Id: <(.*)@/ OK',
]

const GROUPS = [
  '# A comment',
  '/^Subject: (re|fwd): *(.*)$/ REPLACE Subject: ${2} ($(1))',
  '!/^(subject|from|to|cc|date|message-id|received|mime-version|content-[a-z-]*|x-[a-z]*|return-path):/ REJECT an unknown field',
  'if /^X-/',
  '/^X-Mailer: *([a-z]+)[ \\/]*([0-9.]*)/ REPLACE X-Mailer: $1 version $2',
  'if !/^X-Keep/',
  '/^X-(Remove|Strip): *(.*)/',
  '  REPLACE X-${1}ed: $2',
  '/^X-Before: *Yes/i WARN with capitals',
  'endif',
  '/^X-Keep: (.*)/ INFO kept $1',
  'endif',
  '/^From:/!/ann/ WARN not from Ann',
  '/^To: .*(a|ab)(c|bcd)?(d*)/ WARN $1-$2-$3',
  '%^content-type: *text/plain%  PREPEND X-Plain: yes',
  '/^Date:/ WARN date',
]

const FOLDED = [
  '/^X-Fold: one[[:space:]].two/ WARN two lines',
  '/^X-Fold: .*three$/ PREPEND X-Found: three',
  '/^two/m WARN a line begins with two',
  '/^X-Fold: [^o]*o[^x]*$/m WARN by line',
  '/^X-Long: (.{20})/ WARN $1',
  '/^X-Fold:([^~]*)$/ REPLACE X-Folded:$1',
  '/ $/ WARN ends in a blank',
  '/[\u00c0-\u00ff]/ WARN eight bits',
  '/^X-Empty:$/ WARN nothing',
]

const MIME = [
  '/^Content-(Disposition|Type).*name *= *"?([^ ]*\\.(exe|com|bat))/ REJECT attachment $2',
  '/^Content-Type: text\\/html/ PREPEND X-Html: yes',
  '/^Content-Description: (.*)/ REPLACE Content-Description: [$1]',
  '/^Content-Id/ IGNORE',
  '/^X-Inner: (.*)/ WARN inner $1',
]

const BODY = [
  '/^buy now/ REJECT not here',
  '/^forget this/ DISCARD',
  '/^password: (.*)/ REPLACE password: (removed)',
  '/^-- $/ PREPEND A signature follows.',
  '/^drop this line/ IGNORE',
  '/^hold this/ HOLD',
  '/^forward this/ REDIRECT other@redirect.test',
  '/^remark (.*)/ WARN $1',
  '/(x{5})y/ WARN long $1',
  '/^$/ INFO an empty line',
  '/^Content-Id/ WARN a field in a body',
]

export const CHECKS: Readonly<Record<string, ChecksSituation>> = {
  'actions of header_checks': { tables: { header_checks: ACTIONS } },
  'actions of header_checks as pcre': { tables: { header_checks: ACTIONS }, asPcre: true },
  'groups, conditions and flags': { tables: { header_checks: GROUPS } },
  'folded header fields': { tables: { header_checks: FOLDED } },
  'header_checks of body parts': { tables: { header_checks: MIME } },
  'mime_header_checks and nested_header_checks': {
    tables: {
      header_checks: ['/^(Subject|Received|Content-Type):/ WARN of the message'],
      mime_header_checks: ['/^([A-Za-z-]+):/ WARN mime $1'],
      nested_header_checks: ['/^([A-Za-z-]+):/ WARN nested $1'],
    },
  },
  body_checks: { tables: { body_checks: BODY } },
  'body_checks as pcre': { tables: { body_checks: BODY }, asPcre: true },
  'body_checks with a limit': { tables: { body_checks: BODY }, settings: { body_checks_size_limit: '60' } },
  'header_checks with body_checks': { tables: { header_checks: [...MIME, ...ACTIONS], body_checks: BODY } },
  smtp_header_checks: {
    tables: {
      smtp_header_checks: [
        '/^X-Mailer: (.*)/ REPLACE X-Was-Mailer: $1',
        '/^X-Remove/ IGNORE',
        '/^X-Strip/ STRIP',
        '/^X-Before/ PREPEND X-Inserted: by a rule',
        '/^Subject: .*report/ WARN a report',
        '/^Content-Type/ IGNORE',
        '/^X-Keep/ DUNNO',
      ],
    },
  },
  'smtp_header_checks after header_checks': {
    tables: { header_checks: ['/^X-Mailer: (.*)/ REPLACE X-One: $1'], smtp_header_checks: ['/^X-One: (.*)/ REPLACE X-Two: <$1>'] },
    settings: { canonical_maps: 'inline:{ {ann@a.test = ann@new.test} }', smtp_generic_maps: 'inline:{ {bob@b.test = robert@b.test} }' },
  },
}
