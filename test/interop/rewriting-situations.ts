/** Parameters of address rewriting, by the name of the comparison. The texts are valid in both systems. */
const CANONICAL =
  `inline:{ {ann@a.test = a.example@new.test}, {bob@a.test = "b x"@new.test}, {@sub.a.test = @moved.test}, {root = admin@b.test},
  {ann@b.test = ann}, {loop@a.test = loop@b.test}, {loop@b.test = loop@c1.test}, {loop@c1.test = loop@a.test}, {carl@a.test = CARL@a.test}, {zoe@c.test = zoe@c.test, x@y.test},
  {"a b"@a.test = ab@a.test}, {admin@b.test = final@c.test}, {@c.test = any@c2.test}, {list@b.test = <list@upper.test>} }`.replaceAll(
    /\s+/g,
    ' ',
  )

/** Without an address that is mapped to itself: Postfix writes its header field anew, deferd leaves it. */
const GENERIC = CANONICAL.replace(/\{zoe@c.test[^}]*\}, /, '')

const BY_CLASS = `inline:{ {ann@a.test = from-ann@s.test}, {@b.test = @s.test}, {bob@relay.example = b}, {root = r@s.test}, {eve.x@deep.sub.a.test = eve@s.test} }`

const MASQUERADE = { masquerade_domains: 'sub.a.test !x.b.test a.test b.test', masquerade_exceptions: 'root, !ann, Carl' }

const ALIASES =
  `inline:{ {ann@a.test = ann@new.test, bob@a.test, list@c.test}, {bob@a.test = bob@a.test, bob@copy.test}, {@sub.a.test = @moved.test},
  {root = admin@b.test}, {list@c.test = ann@x.test, eve.x@x.test, ann@x.test, list2}, {list2 = zoe@c.test "q r"@c.test}, {@x.b.test = all@r.test},
  {loop@a.test = loop@b.test}, {loop@b.test = loop@a.test, y@z.test}, {carl@a.test = CARL@a.test}, {zoe@b.test = Ann@a.test, ann@A.test},
  {eve.x@b.test = ann@a.test}, {"a b"@b.test = ab@b.test}, {ann@localhost = ann@origin.example, bob} }`.replaceAll(/\s+/g, ' ')

const LOCAL_ALIASES = `inline:{ {ann = ann@new.test, bob}, {root = admin@b.test, ann}, {list = zoe@x.test eve@x.test}, {zoe = zoe@far.test},
  {loop = loop2, y@z.test}, {loop2 = loop}, {eve.x = root}, {postmaster = root} }`.replaceAll(/\s+/g, ' ')

const BCC = `inline:{ {ann@a.test = archive@bcc.test}, {root = archive}, {@b.test = b-archive@bcc.test}, {@c.test = ann@a.test}, {bob@sub.a.test = zoe@c.test} }`

/** Situations in which aliases of senders fail too: Postfix then loses notices, and deferd sends them to the sender itself. */
export const WITHOUT_NOTICES: ReadonlySet<string> = new Set(['virtual_alias_maps at their limits'])

/** Patterns see the whole address, and no part of it. In values of both systems, $$ is a dollar sign. */
const PATTERNS =
  'regexp:{ {/^(ann|bob)@(.*)\\.test$$/ $$1.x@$$2.new.test}, {/^root@[^.]*$$/ admin@b.test}, {if /^carl/}, {!/@a\\.test$$/ c@other.test}, {/^(.)/ $$1@initial.test}, {endif}, {/^eve\\.x@((sub|deep)[^@]*)/ e@$$(2).test} }'
const ALIAS_PATTERNS =
  'regexp:{ {/^list@/ ann@l.test, bob@l.test}, {/^([a-z]*)\\+([^@]*)@(.*)$$/ $$1@$$3}, {/^loop@a\\.test$$/ loop@b.test} }'

export const SITUATIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no map': {},
  canonical_maps: { canonical_maps: CANONICAL },
  'canonical_maps with recipient_delimiter': { canonical_maps: CANONICAL, recipient_delimiter: '+' },
  'canonical_maps without propagation': { canonical_maps: CANONICAL, recipient_delimiter: '+.', propagate_unmatched_extensions: 'virtual' },
  'canonical_maps of envelopes': { canonical_maps: CANONICAL, canonical_classes: 'envelope_sender, envelope_recipient' },
  sender_canonical_maps: { sender_canonical_maps: BY_CLASS, canonical_maps: 'inline:{from-ann@s.test=x@t.test}' },
  'sender_canonical_maps of headers': { sender_canonical_maps: BY_CLASS, sender_canonical_classes: 'header_sender' },
  'sender_canonical_maps with static': { sender_canonical_maps: 'static:noreply@a.test', recipient_delimiter: '+' },
  recipient_canonical_maps: { recipient_canonical_maps: BY_CLASS, recipient_delimiter: '+' },
  'recipient_canonical_maps of envelopes': { recipient_canonical_maps: BY_CLASS, recipient_canonical_classes: 'envelope_recipient' },
  masquerade_domains: MASQUERADE,
  'masquerade_domains of recipients': { ...MASQUERADE, masquerade_classes: 'envelope_recipient', canonical_maps: CANONICAL },
  virtual_alias_maps: { virtual_alias_maps: ALIASES },
  'virtual_alias_maps with recipient_delimiter': { virtual_alias_maps: ALIASES, recipient_delimiter: '+', canonical_maps: CANONICAL },
  'virtual_alias_maps without original recipients': { virtual_alias_maps: ALIASES, enable_original_recipient: 'no' },
  'virtual_alias_maps at their limits': {
    virtual_alias_maps: ALIASES,
    virtual_alias_expansion_limit: '3',
    virtual_alias_address_length_limit: '12',
  },
  always_bcc: { always_bcc: 'archive', virtual_alias_maps: 'inline:{ {archive = a1@bcc.test b1@bcc.test} }' },
  sender_bcc_maps: { sender_bcc_maps: BCC, recipient_delimiter: '+' },
  recipient_bcc_maps: { recipient_bcc_maps: BCC, recipient_delimiter: '+' },
  smtp_generic_maps: { smtp_generic_maps: GENERIC, recipient_delimiter: '+' },
  'smtp_generic_maps with propagation': {
    smtp_generic_maps: BY_CLASS,
    recipient_delimiter: '+',
    propagate_unmatched_extensions: 'generic',
    local_header_rewrite_clients: 'permit_sasl_authenticated',
  },
  'smtp_generic_maps after other maps': { smtp_generic_maps: BY_CLASS, canonical_maps: CANONICAL, virtual_alias_maps: ALIASES },
  'canonical_maps of patterns': {
    canonical_maps: `${PATTERNS} inline:{ {ann@a.test = never@x.test}, {@c.test = @c2.test} }`,
    recipient_delimiter: '+',
  },
  'virtual_alias_maps of patterns': { virtual_alias_maps: ALIAS_PATTERNS, recipient_delimiter: '+' },
  'copies and generic maps of patterns': {
    sender_bcc_maps: 'regexp:{ {/^([a-z.]+)@a\\.test$$/ $$1@bcc.test} }',
    smtp_generic_maps: PATTERNS,
  },
  alias_maps: { alias_maps: LOCAL_ALIASES },
  'alias_maps after other maps': {
    alias_maps: LOCAL_ALIASES,
    virtual_alias_maps: 'inline:{ {ann@a.test = root@localhost}, {admin@b.test = admin@c.test} }',
    canonical_maps: 'inline:{ {zoe@x.test = zoe@canonical.test} }',
    recipient_delimiter: '+',
  },
  'copies of rewritten mail': {
    sender_bcc_maps: BCC,
    recipient_bcc_maps: BCC,
    always_bcc: 'ann@a.test',
    virtual_alias_maps: ALIASES,
    canonical_maps: CANONICAL,
  },
  'headers of clients that are not local': {
    canonical_maps: CANONICAL,
    ...MASQUERADE,
    local_header_rewrite_clients: 'permit_sasl_authenticated',
  },
}
