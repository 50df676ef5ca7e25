/** Parameters of address rewriting, by the name of the comparison. The texts are valid in both systems. */
const CANONICAL =
  `inline:{ {ann@a.test = a.example@new.test}, {bob@a.test = "b x"@new.test}, {@sub.a.test = @moved.test}, {root = admin@b.test},
  {ann@b.test = ann}, {loop@a.test = loop@b.test}, {loop@b.test = loop@c1.test}, {loop@c1.test = loop@a.test}, {carl@a.test = CARL@a.test}, {zoe@c.test = zoe@c.test, x@y.test},
  {"a b"@a.test = ab@a.test}, {admin@b.test = final@c.test}, {@c.test = any@c2.test}, {list@b.test = <list@upper.test>} }`.replaceAll(
    /\s+/g,
    ' ',
  )

const BY_CLASS = `inline:{ {ann@a.test = from-ann@s.test}, {@b.test = @s.test}, {bob@relay.example = b}, {root = r@s.test}, {eve.x@deep.sub.a.test = eve@s.test} }`

const MASQUERADE = { masquerade_domains: 'sub.a.test !x.b.test a.test b.test', masquerade_exceptions: 'root, !ann, Carl' }

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
  'headers of clients that are not local': {
    canonical_maps: CANONICAL,
    ...MASQUERADE,
    local_header_rewrite_clients: 'permit_sasl_authenticated',
  },
}
