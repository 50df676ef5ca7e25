/** A search for which there is no list. */
import { heading, type Screen } from '../markup/frame.ts'
import { html } from '../../presentation/html.ts'
import { linkTo } from '../markup/links.ts'
import type { View } from '../markup/view.ts'

/** The answer to a Message-ID, by which mail cannot be found. */
export const messageIdScreen = (view: View, asked: string): Screen => ({
  title: 'Not searched',
  place: 'messages',
  search: asked,
  main: html`${heading('Mail is not found by its Message-ID')}
    <p>
      Nothing was searched for <code>${asked}</code>: Message-IDs have no index. The mail may be here all the same. Search by the queue id,
      which the reply to the client and the answer of the API have, or by an address.
    </p>
    <p><a href="${linkTo(view, 'messages')}">Messages</a> · <a href="${linkTo(view, 'history')}">History</a></p>`,
})
