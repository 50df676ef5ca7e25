/** The reader of rules of the remote side: no key is accepted and ignored. */
import { expect, test } from 'vitest'
import type { KeyName, RuleText } from '../../src/testkit/remote/rule-keys.ts'
import { readRule } from '../../src/testkit/remote/rule-reader.ts'

const RCPT: RuleText = { at: 'rcpt', reply: '450 4.2.1 busy' }
const END: RuleText = { at: 'end-of-data', reply: '450 4.2.1 busy' }
const GREYLIST: RuleText = { at: 'rcpt', greylist: '5m' }
const RATE: RuleText = { at: 'mail', rate: '10/1m' }

/** For each key, a rule without it and a value that changes the rule. */
const EXAMPLES: { readonly [Key in KeyName]: readonly [without: RuleText, value: NonNullable<RuleText[Key]>] } = {
  at: [{ rate: '10/1m' }, 'mail'],
  domain: [RCPT, 'x.example'],
  mx: [RCPT, 'mx1.x.example'],
  client: [RCPT, '192.0.2.1'],
  helo: [RCPT, 'relay.example'],
  sender: [RCPT, 'app@us.example'],
  recipient: [RCPT, 'ann@x.example'],
  size_over: [RCPT, '10k'],
  size_under: [RCPT, '10k'],
  header: [END, 'Subject: *invoice*'],
  first: [RCPT, 2],
  nth: [RCPT, 2],
  every: [RCPT, 2],
  per: [RCPT, 'recipient'],
  probability: [RCPT, '30%'],
  from: [RCPT, '1h'],
  until: [RCPT, '1h'],
  flapping: [RCPT, '2m/8m'],
  greylist: [RCPT, '5m'],
  greylist_window: [GREYLIST, '2h'],
  connections_over: [{ at: 'greeting', reply: '421 4.7.0 too many' }, 2],
  rate: [{ at: 'mail', reply: '421 4.7.0 slow' }, '10/1m'],
  penalty: [RATE, '5m'],
  quota: [RCPT, 2],
  recipients_over: [RCPT, 2],
  dns: [{ at: 'dns', delay: '1s' }, 'nxdomain'],
  connect: [{ at: 'connect', delay: '1s' }, 'timeout'],
  reply: [{ at: 'rcpt', delay: '1s' }, '450 4.2.1 busy'],
  raw: [{ at: 'rcpt', delay: '1s' }, 'x'],
  drop: [RCPT, 'rst'],
  stall: [{ at: 'rcpt', delay: '1s' }, true],
  delay: [RCPT, '1s'],
  drip: [RCPT, '1s'],
  split: [RCPT, 2],
  gap: [{ ...RCPT, split: 2 }, '1s'],
  repeat: [RCPT, 2],
  cut: [RCPT, 2],
  early: [RCPT, true],
  extensions: [{ at: 'ehlo', delay: '1s' }, ['SIZE 10']],
  after: [{ at: 'body', drop: 'rst' }, '10k'],
  read_rate: [{ at: 'body', drop: 'rst' }, '1k'],
  keep: [END, true],
}

/** A rule without its text. */
function ruleOf(text: RuleText): object {
  const read = readRule('rule', text)
  expect(read).toHaveProperty('rule')
  return 'rule' in read ? { ...read.rule, written: undefined } : {}
}

test.each(Object.entries(EXAMPLES))('the key %s changes the rule that is read', (key, [without, value]) => {
  expect(ruleOf({ ...without, [key]: value })).not.toEqual(ruleOf(without))
})
