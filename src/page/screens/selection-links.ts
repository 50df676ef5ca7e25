/** Links to the messages of a selection, and to the dry runs of operations on all of them. */
import { buttonText } from './operation-screens.ts'
import { html, type Html } from '../../presentation/html.ts'
import { linkTo, type Query } from '../markup/links.ts'
import type { View } from '../markup/view.ts'

const verbsOf = ({ queue }: Query) => [queue === 'hold' ? 'release' : 'hold', 'expire', 'delete'] as const

/** `query` has the conditions of the selection; `back` is the path below the root to which an operation leads back. */
export const selectionLinks = (view: View, query: Query, back: string): Html =>
  html`<a class="act" href="${linkTo(view, 'messages', query)}">List</a>${
      view.requester.mayOperate
        ? verbsOf(query).map(
            (operation) =>
              html`<a class="act" href="${linkTo(view, 'operations/new', { operation, ...query, back })}" data-dialog
                >${buttonText(operation)}</a
              >`,
          )
        : null
    }`
