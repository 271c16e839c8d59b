// @a2a-js/sdk 0.2.5 as server: JSON-RPC.
import express from 'express';
import { A2AExpressApp, DefaultRequestHandler, InMemoryTaskStore } from 'a2a02/server';
import { executor, legacyCard } from './server_0_x.mjs';

export async function serve(port) {
  const card = legacyCard(`http://127.0.0.1:${port}/`);
  card.capabilities.pushNotifications = false; // it keeps webhooks, and calls none
  new A2AExpressApp(new DefaultRequestHandler(card, new InMemoryTaskStore(), executor)).setupRoutes(express()).listen(port, '127.0.0.1');
}
