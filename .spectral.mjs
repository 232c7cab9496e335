import { oas } from '@stoplight/spectral-rulesets'

const examples = oas.rules['oas3-valid-media-example']
const headers = examples.given.filter((path) => path.startsWith('$..headers'))

/**
 * Spectral's rules of OpenAPI. Two thousand responses refer to fifteen headers: their examples are checked where they are defined and not
 * wherever they are referred to, which took a third of the time.
 */
export default {
  extends: oas,
  rules: {
    'oas3-valid-media-example': { ...examples, given: examples.given.filter((path) => !headers.includes(path)) },
    'header-example': { ...examples, given: headers, resolved: false },
  },
}
