import { expect, test } from 'vitest'
import { scrapesBesideMail } from '../support/scrapes.ts'

// With 1,000,000 messages, and the limits that hold for an idle machine, in test/long.
test('scrapes of /metrics beside 20,000 messages delay neither SMTP clients nor health checks', { timeout: 120_000 }, async () => {
  const { greeting, health, firstPage } = await scrapesBesideMail(20_000, 200)
  // Single values may wait for a processor on a busy machine.
  for (const { median, p99 } of [greeting, health]) {
    expect(median).toBeLessThan(250)
    expect(p99).toBeLessThan(2_000)
  }
  expect(firstPage.median).toBeLessThan(10)
})
