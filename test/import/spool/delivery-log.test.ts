import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readDeliveryLog, readTraceLog } from '../../../src/import/spool/delivery-log.ts'

const entry = (offset: number, reason: string, more = ''): string =>
  `<a@b.test>: ${reason}\nrecipient=a@b.test\noffset=${offset}\nstatus=4.4.1\naction=delayed\n${more}reason=${reason}\n\n`

test.each([
  ['connect to mx.b.test[192.0.2.1]:25: Connection refused', '', 'connect'],
  ['host mx.b.test[192.0.2.1] refused to talk to me: 421 busy', 'diag_type=smtp\ndiag_text=421 busy\n', 'greeting'],
  ['Host or domain name not found. Name service error for name=b.test type=MX: Host not found, try again', '', 'dns'],
  ['host mx.b.test said: 451 later (in reply to MAIL FROM command)', 'diag_type=smtp\ndiag_text=451 later\n', 'mail'],
  ['host mx.b.test said: 451 later (in reply to end of DATA command)', 'diag_type=smtp\ndiag_text=451 later\n', 'end-of-data'],
  ['delivery temporarily suspended: conversation with b.test timed out', '', 'connect'],
])('%s', (reason, more, stage) => {
  const outcome = readDeliveryLog(`\n${entry(5, 'earlier')}\n${entry(5, reason, more)}`).get(5)
  expect(outcome).toMatchObject({ status: '4.4.1', reason, stage })
  expect(outcome?.reply).toBe(more === '' ? undefined : /diag_text=(.*)/.exec(more)?.[1])
})

test('malformed entries are skipped, and control characters masked', () => {
  const log = readDeliveryLog(`offset=x\nstatus=4.0.0\n\noffset=3\nstatus=broken\n\n${entry(7, 'a\u001bb')}`)
  expect([...log.keys()]).toEqual([7])
  expect(log.get(7)?.reason).toBe('a?b')
})

test('any text is read', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary-ascii' }), (text) => void readDeliveryLog(text)))
})

test('a trace log names the aliases of which a success notice is owed', () => {
  const expanded = (address: string, more = ''): string =>
    `<${address}>: alias expanded\nrecipient=${address}\n${more}status=2.0.0\naction=expanded\n\n`
  const delivered = 'recipient=c@b.test\nstatus=2.0.0\naction=relayed\n\n'
  expect(readTraceLog(`\n${expanded('a@b.test', 'dsn_orig_rcpt=rfc822;x@y.test\n')}\n${expanded('b@b.test')}${delivered}`)).toEqual([
    { address: 'a@b.test', orcpt: 'rfc822;x@y.test' },
    { address: 'b@b.test', orcpt: undefined },
  ])
})
