/**
 * Addresses of providers that speak the protocol of OpenAI at one address for everybody, by the names that their models have here: for
 * those an operator gives a key alone.
 */
export const knownAddresses: Readonly<Record<string, string>> = {
  deepseek: 'https://api.deepseek.com/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta/openai',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  xai: 'https://api.x.ai/v1',
}
