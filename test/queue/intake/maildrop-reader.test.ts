/** The reader of the maildrop beside a user who replaces an entry between the first look and the opening. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { COMPLETE, encodeEnvelope } from '../../../src/queue/intake/maildrop-file.ts'
import { openEntry, type MaildropFiles } from '../../../src/queue/intake/maildrop-reader.ts'

/** A maildrop with one complete message, and a file of another place that has the form of one. */
function planted() {
  const root = mkdtempSync(join(tmpdir(), 'deferd-reader-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const [drop, entry, elsewhere] = [join(root, 'maildrop'), join(root, 'maildrop/one'), join(root, 'elsewhere')]
  mkdirSync(drop)
  const content = Buffer.from('Subject: hi\r\n\r\nhi\r\n')
  const file = Buffer.concat([
    encodeEnvelope({ sender: 'app@us.example', recipients: [{ address: 'ann@far.example' }] }, content.length),
    content,
  ])
  for (const path of [entry, elsewhere]) writeFileSync(path, file, { mode: COMPLETE })
  /** Opens the entry after `replace`, which runs when the reader has looked at it. */
  const opened = async (replace: () => void) => {
    const lstat = (async (...args: Parameters<typeof fs.lstat>) => {
      const stats = await fs.lstat(...args)
      replace()
      return stats
    }) as MaildropFiles['lstat']
    const found = await openEntry({ ...fs, lstat }, drop, Buffer.from('one'))
    if (found.kind === 'message') await found.file.close()
    return found
  }
  return { entry, elsewhere, opened }
}

test('an entry that stays as it is is read', async () => {
  const { opened } = planted()
  expect(await opened(() => undefined)).toMatchObject({ kind: 'message' })
})

test('an entry that becomes a link to a file of another place is left, and the link is not followed', async () => {
  const { entry, elsewhere, opened } = planted()
  const found = await opened(() => {
    rmSync(entry)
    symlinkSync(elsewhere, entry)
  })
  expect(found).toMatchObject({ kind: 'left', why: expect.stringContaining('ELOOP') as string })
})
