import { expect, test } from 'vitest'
import { differingOrcpt } from '../../src/mail/envelope.ts'

test('the original recipient is shown where it differs', () => {
  const of = (orcpt: string | undefined) => differingOrcpt({ address: 'ann@far.example', orcpt })
  expect([undefined, 'rfc822;Ann@FAR.example', 'rfc822;list@us.example', 'UTF-8;grüße@x', 'x400;/cn=ann'].map(of)).toEqual([
    null,
    null,
    'list@us.example',
    'grüße@x',
    null,
  ])
})
