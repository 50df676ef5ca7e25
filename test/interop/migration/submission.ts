/** Submits generated mail by SMTP. */
import { Client } from '../dialogue.ts'
import type { Input } from './inputs.ts'

/** Sessions that submit at the same time. */
const WIDTH = 6

/** Submits mail and returns the replies to each message, without queue ids. */
export async function submitted(port: number, mails: readonly Input[]): Promise<readonly (readonly string[])[]> {
  const replies: (readonly string[])[] = []
  const left = mails.entries()
  const submitLeft = async () => {
    for (const [n, mail] of left) replies[n] = await submit(port, mail)
  }
  await Promise.all(Array.from({ length: WIDTH }, submitLeft))
  return replies
}

async function submit(port: number, { from, sender, parameters, recipients, content }: Input): Promise<readonly string[]> {
  const client = await Client.open(port, from)
  try {
    const replies: string[] = []
    const say = async (text: string): Promise<void> => {
      client.send(`${text}\r\n`)
      replies.push((await client.reply()).replace(/ queued as .*/, ''))
    }
    await client.reply()
    await say('EHLO client.test')
    replies.pop()
    await say(`MAIL FROM:<${sender}>${parameters}`)
    for (const one of recipients) await say(`RCPT TO:<${one.address}>${one.parameters}`)
    await say('DATA')
    if (replies.at(-1)?.startsWith('354')) await say(`${content.replaceAll(/^\./gm, '..')}.`)
    return replies
  } finally {
    client.close()
  }
}
