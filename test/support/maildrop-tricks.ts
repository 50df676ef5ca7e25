/** Entries that a hostile local user can create in the maildrop. */
import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

const COMPLETE = 0o644

/** Stops the activity of a trick. */
type End = () => void

export interface Planted {
  /** Recipients of the valid messages among the entries. */
  readonly valid: readonly string[]
  readonly end?: End
}

const envelope = (to: readonly string[], length: number, more: object = {}): string =>
  `${JSON.stringify({ version: 1, sender: 'app@us.example', recipients: to.map((address) => ({ address })), length, ...more })}\n`

const CONTENT = 'Subject: hi\r\n\r\nhi\r\n'

const file = (to: string, content = CONTENT): string => envelope([to], content.length) + content

/** Creates a valid file as sendmail does: the file is complete when its mode is set. */
function submit(path: string | Buffer, text: string | Buffer): void {
  writeFileSync(path, text, { mode: 0o600 })
  chmodSync(path, COMPLETE)
}

const invalid = (path: string | Buffer, text: string): Planted => {
  submit(path, text)
  return { valid: [] }
}

const every = (interval: number, action: () => void): End => {
  const timer = setInterval(() => {
    try {
      action()
    } catch {
      // The daemon has removed the file.
    }
  }, interval)
  return () => clearInterval(timer)
}

const LARGE = `Subject: large\r\n\r\n${'x'.repeat(70)}\r\n`.padEnd(4_000_000, `${'y'.repeat(78)}\r\n`).replace(/\r?\n?$/, '\r\n')

const manyFiles = (drop: string): Planted => {
  const valid: string[] = []
  for (let i = 0; i < 20_000; i++) {
    const path = join(drop, `many-${i}`)
    if (i % 20 === 0) {
      valid.push(`many-${i}@far.example`)
      submit(path, file(`many-${i}@far.example`))
    } else writeFileSync(path, '', { mode: i % 20 === 1 ? COMPLETE : 0o600 })
  }
  return { valid }
}

const manyRecipients = (drop: string): Planted => {
  const first = join(drop, 'recipients-0')
  submit(
    first,
    envelope(
      Array.from({ length: 60_000 }, (_, i) => `r${i}@far.example`),
      CONTENT.length,
    ) + CONTENT,
  )
  for (let i = 1; i < 40; i++) copyFileSync(first, join(drop, `recipients-${i}`))
  return { valid: [] }
}

/** The lock of flock(1) is held until the end. */
const locked = (drop: string): Planted => {
  const path = join(drop, 'locked')
  submit(path, file('locked@far.example'))
  const holder = spawn('flock', ['-x', path, 'sleep', '600'], { stdio: 'ignore' })
  holder.once('error', () => undefined)
  return { valid: ['locked@far.example'], end: () => void holder.kill() }
}

const socket = (drop: string): Planted => {
  const server = createServer()
  server.listen(join(drop, 'socket'))
  return { valid: [], end: () => void server.close() }
}

const named = (drop: string, name: Buffer, to: string): Planted => {
  submit(Buffer.concat([Buffer.from(`${drop}/`), name]), file(to))
  return { valid: [to] }
}

/** Tricks by name; each is called with the path of the maildrop. */
export const TRICKS: Readonly<Record<string, (drop: string) => Planted>> = {
  'a directory, also one with the name of a refused file': (drop) => {
    for (const name of ['directory', '1.refused', 'x.refused']) mkdirSync(join(drop, name))
    writeFileSync(join(drop, 'directory', 'file'), 'x')
    return invalid(join(drop, 'x'), 'hello')
  },
  'a FIFO': (drop) => {
    execFileSync('mkfifo', ['-m', '644', join(drop, 'fifo')])
    return { valid: [] }
  },
  'a socket': socket,
  'a symbolic link': (drop) => {
    symlinkSync('/etc/hosts', join(drop, 'link'))
    symlinkSync('/dev/zero', join(drop, 'endless'))
    symlinkSync(join(drop, 'loop'), join(drop, 'loop'))
    return { valid: [] }
  },
  'a hard link to a file of another user': (drop) => {
    const secret = join(drop, '..', 'secret')
    submit(secret, file('secret@far.example'))
    linkSync(secret, join(drop, 'hard-link'))
    return { valid: [] }
  },
  'a name of 250 bytes': (drop) => {
    invalid(join(drop, 'i'.repeat(250)), 'hello')
    return named(drop, Buffer.from('n'.repeat(250)), 'long-name@far.example')
  },
  'a name that is not UTF-8': (drop) => {
    invalid(Buffer.concat([Buffer.from(`${drop}/`), Buffer.from([0xfe, 0xfe])]), 'hello')
    return named(drop, Buffer.from([0xff, 0x80, 0xc3]), 'bytes@far.example')
  },
  'a line break in the name': (drop) => {
    invalid(join(drop, 'a\nb'), 'hello')
    return named(drop, Buffer.from('c\nd\u001b[2J'), 'line-break@far.example')
  },
  'sparse files of 1 TB': (drop) => {
    const head = envelope(['sparse@far.example'], 2 ** 40)
    for (const [name, text, size] of [
      ['sparse-zero', '', 2 ** 40],
      ['sparse-message', head, head.length + 2 ** 40],
    ] as const) {
      writeFileSync(join(drop, name), text, { mode: COMPLETE })
      truncateSync(join(drop, name), size)
    }
    return { valid: [] }
  },
  'a file that grows while it is read': (drop) => {
    const path = join(drop, 'grows')
    submit(path, file('grows@far.example', LARGE))
    return { valid: [], end: every(1, () => writeFileSync(path, 'more\r\n', { flag: 'a+' })) }
  },
  'a file that shrinks while it is read': (drop) => {
    const path = join(drop, 'shrinks')
    const text = file('shrinks@far.example', LARGE)
    submit(path, text)
    let size = text.length
    return { valid: [], end: every(1, () => truncateSync(path, (size -= 1_000))) }
  },
  'a file that cannot be read': (drop) => {
    writeFileSync(join(drop, 'unreadable'), file('unreadable@far.example'), { mode: 0o600 })
    writeFileSync(join(drop, 'no-mode'), file('unreadable@far.example'), { mode: 0 })
    return { valid: [] }
  },
  'a wrong length': (drop) => {
    invalid(join(drop, 'too-short'), envelope(['length@far.example'], 1_000) + CONTENT)
    invalid(join(drop, 'negative'), envelope(['length@far.example'], -1) + CONTENT)
    return invalid(join(drop, 'too-long'), envelope(['length@far.example'], 1) + CONTENT)
  },
  '40 files with 60,000 recipients': manyRecipients,
  'CRLF and NUL in the envelope': (drop) => {
    invalid(join(drop, 'crlf'), envelope(['a@far.example>\r\nRCPT TO:<crlf@far.example'], CONTENT.length) + CONTENT)
    invalid(join(drop, 'nul'), envelope(['nul\0@far.example'], CONTENT.length) + CONTENT)
    invalid(join(drop, 'envid'), envelope(['envid@far.example'], CONTENT.length, { envid: 'a\r\nRCPT TO:<envid@far.example>' }) + CONTENT)
    return invalid(join(drop, 'smuggled'), file('smuggled@far.example', 'a: b\r\n\r\nx\n.\nMAIL FROM:<>\r\n'))
  },
  '20,000 files': manyFiles,
  'the name of a file that was taken before': (drop) => {
    submit(join(drop, 'taken'), file('taken-0@far.example'))
    let next = 1
    const valid = ['taken-0@far.example']
    // A user replaces the file while the first one is read.
    const end = every(20, () => {
      if (next > 5) return
      const to = `replaced-${next++}@far.example`
      writeFileSync(join(drop, '..', 'next'), file(to), { mode: COMPLETE })
      renameSync(join(drop, '..', 'next'), join(drop, 'replaced'))
    })
    return { valid, end }
  },
  'a locked file': locked,
  'a time in 2100': (drop) => {
    submit(join(drop, 'future'), file('future@far.example'))
    utimesSync(join(drop, 'future'), new Date('2100-01-01'), new Date('2100-01-01'))
    return { valid: ['future@far.example'] }
  },
  'a file that is removed while it is read': (drop) => {
    submit(join(drop, 'removed'), file('removed@far.example', LARGE))
    return { valid: [], end: every(200, () => rmSync(join(drop, 'removed'))) }
  },
  'a file that its user still writes to': (drop) => {
    submit(join(drop, 'open'), file('open@far.example'))
    openSync(join(drop, 'open'), 'r+')
    return { valid: ['open@far.example'] }
  },
}
